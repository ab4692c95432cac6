// Points of every head from one texture, in one draw call a slice. What changes often is small: a byte a point for
// the colouring and one for marks, a scale of 2 × 256 colours, a few numbers a panel.
import type { Rgb } from "./colour";
import { FRAGMENT, VERTEX, WIDE_BITS } from "./shaders";

const WIDE = 1 << WIDE_BITS;

export interface CloudData {
  heads: number;
  /** Points a head; queries come first. */
  points: number;
  queries: number;
  dims: number;
  /** (heads, points, dims), 0 to 65535 across each head's box. */
  places: Uint16Array;
}

/** A panel in sight: corner in CSS pixels, how clear it stands, and its head's shape (see `shapeOf`). */
export interface Cell {
  head: number;
  x: number;
  y: number;
  clear: number;
  shape: readonly [number, number, number];
  /** See `normSpan`. */
  span: readonly [number, number, number, number];
}

export interface CloudView {
  cells: Cell[];
  /** Side of a panel in CSS pixels. */
  side: number;
  /** Diameter of a dot in CSS pixels. */
  size: number;
  dim: number;
  paper: Rgb;
  /** Column by column. */
  turn: readonly number[];
  room: number;
  normColour: boolean;
  normSize: boolean;
}

export class NoWebGL extends Error {}

/** Slices of every n-th point: a part of them is a fair sample, and all of them always make the same picture. */
const MOST_SLICES = 8;
const SLICE_POINTS = 1000;

export class Cloud {
  private readonly gl: WebGL2RenderingContext;
  private program!: WebGLProgram;
  private uniforms: Record<string, WebGLUniformLocation | null> = {};
  private buffers!: { value: WebGLBuffer; mark: WebGLBuffer; cells: WebGLBuffer };
  private textures!: { places: WebGLTexture; norms: WebGLTexture; scale: WebGLTexture };
  private data: CloudData | undefined;
  private value: Uint8Array = new Uint8Array(0);
  private mark: Uint8Array = new Uint8Array(0);
  private scale: Uint8Array = new Uint8Array(2 * 256 * 4);
  private norms: Uint8Array | undefined;
  private slices = 1;
  private slice = 0;
  /** Points that one frame may draw; follows what the machine can do. */
  budget = 400_000;
  lost = false;

  /** `restored` is called when a lost context is whole again and must be drawn. */
  constructor(
    readonly canvas: HTMLCanvasElement,
    restored: () => void,
  ) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, preserveDrawingBuffer: true });
    if (!gl) throw new NoWebGL("maps are drawn with WebGL2, which this browser does not offer; the text views work without it");
    this.gl = gl;
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.lost = true;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.lost = false;
      this.build();
      this.upload();
      restored();
    });
    this.build();
  }

  load(data: CloudData): void {
    this.data = data;
    this.norms = undefined;
    this.slices = Math.min(MOST_SLICES, Math.max(1, Math.ceil(data.points / SLICE_POINTS)));
    this.value = new Uint8Array(data.points);
    this.mark = new Uint8Array(data.points);
    this.upload();
  }

  setValues(value: Uint8Array): void {
    this.value = value;
    this.fill(this.buffers.value, value);
  }

  setMarks(mark: Uint8Array): void {
    this.mark = mark;
    this.fill(this.buffers.mark, mark);
  }

  /** 256 colours for queries, then 256 for keys, RGBA. */
  setScale(scale: Uint8Array): void {
    this.scale = scale;
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE2);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 2, 0, gl.RGBA, gl.UNSIGNED_BYTE, scale);
  }

  /** (heads, points) bytes. */
  setNorms(norms: Uint8Array): void {
    this.norms = norms;
    this.textures.norms = this.table(this.gl.TEXTURE1, this.textures.norms, norms, 1);
  }

  resize(width: number, height: number, ratio: number): void {
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
  }

  /** Starts the picture anew and draws what fits in one frame; `more` draws on. Both say whether all is there. */
  draw(view: CloudView, ratio: number): boolean {
    const { gl } = this;
    if (this.lost) return true;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    const [red, green, blue] = view.paper.map((part) => part / 255);
    gl.clearColor(red, green, blue, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    this.slice = 0;
    if (!this.data || view.cells.length === 0) return true;
    this.settle(view, ratio);
    return this.more(view.cells.length);
  }

  more(cells: number): boolean {
    const { gl, data } = this;
    if (this.lost || !data) return true;
    let left = this.budget;
    while (this.slice < this.slices && left > 0) {
      const count = Math.ceil((data.points - this.slice) / this.slices);
      this.point(this.buffers.value, 0, this.slice);
      this.point(this.buffers.mark, 1, this.slice);
      gl.uniform1i(this.uniforms["first"], this.slice);
      gl.drawArraysInstanced(gl.POINTS, 0, count, cells);
      left -= count * cells;
      this.slice += 1;
    }
    return this.slice >= this.slices;
  }

  close(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private settle(view: CloudView, ratio: number): void {
    const { gl, uniforms, data } = this;
    const cells = new Float32Array(view.cells.length * 11);
    view.cells.forEach((cell, at) => cells.set([cell.x * ratio, cell.y * ratio, cell.head, cell.clear, ...cell.shape, ...cell.span], at * 11));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.cells);
    gl.bufferData(gl.ARRAY_BUFFER, cells, gl.DYNAMIC_DRAW);
    gl.uniform1i(uniforms["stride"], this.slices);
    gl.uniform1i(uniforms["points"], data?.points ?? 0);
    gl.uniform1i(uniforms["queries"], data?.queries ?? 0);
    gl.uniform1i(uniforms["deep"], Number(data?.dims === 3));
    gl.uniform1i(uniforms["normColour"], Number(view.normColour && this.norms !== undefined));
    gl.uniform1i(uniforms["normSize"], Number(view.normSize && this.norms !== undefined));
    gl.uniform1f(uniforms["side"], view.side * ratio);
    gl.uniform2f(uniforms["screen"], this.canvas.width, this.canvas.height);
    gl.uniform1f(uniforms["size"], Math.max(1, view.size * ratio));
    gl.uniform1f(uniforms["dim"], view.dim);
    gl.uniform3f(uniforms["paper"], view.paper[0] / 255, view.paper[1] / 255, view.paper[2] / 255);
    gl.uniformMatrix3fv(uniforms["turn"], false, view.turn);
    gl.uniform1f(uniforms["room"], view.room);
  }

  private build(): void {
    const { gl } = this;
    this.program = link(gl);
    gl.useProgram(this.program);
    for (const name of ["places", "norms", "scale", "first", "stride", "points", "queries", "normColour", "normSize", "side", "screen", "size", "dim", "paper", "turn", "room", "deep"]) {
      this.uniforms[name] = gl.getUniformLocation(this.program, name);
    }
    gl.uniform1i(this.uniforms["places"], 0);
    gl.uniform1i(this.uniforms["norms"], 1);
    gl.uniform1i(this.uniforms["scale"], 2);
    this.buffers = { value: gl.createBuffer(), mark: gl.createBuffer(), cells: gl.createBuffer() };
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.cells);
    for (const [place, size, at] of [[2, 4, 0], [3, 3, 16], [4, 4, 28]]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 44, at);
      gl.vertexAttribDivisor(place, 1);
    }
    for (const place of [0, 1]) gl.enableVertexAttribArray(place);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    this.textures = { places: gl.createTexture(), norms: gl.createTexture(), scale: gl.createTexture() };
    gl.activeTexture(gl.TEXTURE2);
    gl.bindTexture(gl.TEXTURE_2D, this.textures.scale);
    nearest(gl);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Everything kept here goes to the graphics memory; once at the start, and again after a loss. */
  private upload(): void {
    if (!this.data) return;
    const { gl, data } = this;
    this.textures.places = this.table(gl.TEXTURE0, this.textures.places, data.places, data.dims);
    this.textures.norms = this.table(gl.TEXTURE1, this.textures.norms, this.norms ?? new Uint8Array(1), 1);
    this.setValues(this.value);
    this.setMarks(this.mark);
    this.setScale(this.scale);
  }

  /** A long list as a texture of fixed width; whole rows go up without being copied. */
  private table(unit: number, old: WebGLTexture, list: Uint16Array | Uint8Array, parts: number): WebGLTexture {
    const { gl } = this;
    const wide = list instanceof Uint16Array;
    const count = list.length / parts;
    const rows = Math.max(1, Math.ceil(count / WIDE));
    if (rows > (gl.getParameter(gl.MAX_TEXTURE_SIZE) as number)) {
      throw new Error(`${count.toLocaleString("en")} points are more than this graphics card can hold; lay out fewer tokens`);
    }
    const texture = gl.createTexture();
    gl.deleteTexture(old);
    gl.activeTexture(unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    nearest(gl);
    const kinds = [[gl.R8, gl.RED], [gl.RG16UI, gl.RG_INTEGER], [gl.RGB16UI, gl.RGB_INTEGER]];
    const [inside, format] = kinds[parts - 1];
    const type = wide ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE;
    gl.texStorage2D(gl.TEXTURE_2D, 1, inside, WIDE, rows);
    const whole = Math.floor(count / WIDE);
    if (whole > 0) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, WIDE, whole, format, type, list, 0);
    if (count > whole * WIDE) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, whole, count - whole * WIDE, 1, format, type, list, whole * WIDE * parts);
    return texture;
  }

  private fill(buffer: WebGLBuffer, bytes: Uint8Array): void {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.DYNAMIC_DRAW);
  }

  /** Every n-th byte of a list, from the slice's own. */
  private point(buffer: WebGLBuffer, place: number, from: number): void {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.vertexAttribIPointer(place, 1, gl.UNSIGNED_BYTE, this.slices, from);
  }
}

function nearest(gl: WebGL2RenderingContext): void {
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
}

function link(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
    const shader = gl.createShader(kind) as WebGLShader;
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new NoWebGL(`this browser's WebGL2 cannot run the map's program (${gl.getProgramInfoLog(program) ?? "no reason given"})`);
  }
  return program;
}
