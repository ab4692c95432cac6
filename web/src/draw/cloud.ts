// How are the points of a map drawn with WebGL2? All points are in one texture, and a list has the numbers of those
// to draw. What changes often is small: two bytes per point (colour, mark), 2 × 256 colours, a few numbers per panel.
import type { Rgb } from "./colour";
import { PATCH, ROUND, SQUARE, VERTEX, WIDE_BITS } from "./shaders";

const WIDE = 1 << WIDE_BITS;

export interface CloudData {
  heads: number;
  /** Number of points of a head; queries come first. */
  points: number;
  queries: number;
  dims: number;
  /** (heads, points, dims), 0 to 65535 over each head's box. */
  places: Uint16Array;
}

/** A panel in view: corner in CSS pixels, opacity, and the shape of its head (see `shapeOf`). */
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
  /** The rotation matrix, column by column. */
  turn: readonly number[];
  room: number;
  normColour: boolean;
  normSize: boolean;
  /** Side of a patch in CSS pixels; 0 if points are dots. */
  thumb: number;
  tinted: boolean;
}

/** Pictures on one sheet, and each point's part of it in 65535ths (P, 4), 0 without a patch. */
export interface CloudSheet {
  bitmap: ImageBitmap;
  boxes: Uint16Array;
}

export class NoWebGL extends Error {}

/** Dots up to this many pixels are squares. */
const SMALL = 2;

export class Cloud {
  private readonly gl: WebGL2RenderingContext;
  private square!: Program;
  private round!: Program;
  private patch!: Program;
  private list!: WebGLBuffer;
  private textures!: Record<"places" | "norms" | "scale" | "own" | "cells" | "boxes" | "sheet", WebGLTexture>;
  private data: CloudData | undefined;
  /** Two bytes for each point: value and mark. */
  private own = new Uint8Array(0);
  private scale: Uint8Array = new Uint8Array(2 * 256 * 4);
  private norms: Uint8Array | undefined;
  private sheet: CloudSheet | undefined;
  private listed: Uint32Array | undefined;
  private drawn = 0;
  /** Number of points that one frame may draw; adapts to the speed of the machine. */
  budget = 200_000;
  lost = false;

  /** `restored` is called when a lost context is back and must be drawn again. */
  constructor(
    readonly canvas: HTMLCanvasElement,
    restored: () => void,
  ) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, preserveDrawingBuffer: true });
    if (!gl)
      throw new NoWebGL("maps need WebGL2, which this browser does not have; use the Text tab, or another browser");
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
    this.sheet = undefined;
    this.listed = undefined;
    this.own = new Uint8Array(2 * data.points);
    this.upload();
  }

  setValues(value: Uint8Array): void {
    for (let at = 0; at < value.length; at++) this.own[2 * at] = value[at];
    this.sendOwn();
  }

  setMarks(mark: Uint8Array): void {
    for (let at = 0; at < mark.length; at++) this.own[2 * at + 1] = mark[at];
    this.sendOwn();
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

  setSheet(sheet: CloudSheet): void {
    const { gl } = this;
    this.sheet = sheet;
    this.textures.boxes = this.table(gl.TEXTURE5, this.textures.boxes, sheet.boxes, 4);
    gl.activeTexture(gl.TEXTURE6);
    gl.bindTexture(gl.TEXTURE_2D, this.textures.sheet);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, sheet.bitmap);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.LINEAR);
    for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, wrap, gl.CLAMP_TO_EDGE);
  }

  resize(width: number, height: number, ratio: number): void {
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
  }

  /** Clear the picture and draw what fits in one frame; `more` continues. Both return whether all is drawn. */
  draw(view: CloudView, list: Uint32Array, ratio: number): boolean {
    const { gl } = this;
    if (this.lost) return true;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    const [red, green, blue] = view.paper.map((part) => part / 255);
    gl.clearColor(red, green, blue, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    this.drawn = 0;
    if (!this.data || list.length === 0) return true;
    this.settle(view, ratio);
    if (list !== this.listed) {
      gl.bufferData(gl.ARRAY_BUFFER, list, gl.DYNAMIC_DRAW);
      this.listed = list;
    }
    return this.more();
  }

  more(): boolean {
    const { gl, listed } = this;
    if (this.lost || !listed) return true;
    const count = Math.min(this.budget, listed.length - this.drawn);
    gl.drawArrays(gl.POINTS, this.drawn, count);
    this.drawn += count;
    return this.drawn >= listed.length;
  }

  close(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private settle(view: CloudView, ratio: number): void {
    const { gl, data } = this;
    const size = Math.max(1, view.size * ratio);
    const thumb = this.sheet ? view.thumb * ratio : 0;
    const small = size <= SMALL && thumb === 0;
    const { program, uniforms } = thumb > 0 ? this.patch : small ? this.square : this.round;
    gl.useProgram(program);
    if (small) gl.disable(gl.BLEND);
    else gl.enable(gl.BLEND);
    const cells = new Float32Array((data?.heads ?? 0) * 12);
    for (const cell of view.cells)
      cells.set([cell.x * ratio, cell.y * ratio, cell.clear, 0, ...cell.shape, 0, ...cell.span], cell.head * 12);
    this.textures.cells = this.table(gl.TEXTURE4, this.textures.cells, cells, 4);
    gl.uniform1i(uniforms["points"], data?.points ?? 0);
    gl.uniform1i(uniforms["queries"], data?.queries ?? 0);
    gl.uniform1i(uniforms["deep"], Number(data?.dims === 3));
    gl.uniform1i(uniforms["normColour"], Number(view.normColour && this.norms !== undefined));
    gl.uniform1i(uniforms["normSize"], Number(view.normSize && this.norms !== undefined));
    gl.uniform1f(uniforms["side"], view.side * ratio);
    gl.uniform2f(uniforms["screen"], this.canvas.width, this.canvas.height);
    gl.uniform1f(uniforms["size"], size);
    gl.uniform1f(uniforms["edge"], small ? 0 : 1);
    gl.uniform1f(uniforms["dim"], view.dim);
    gl.uniform3f(uniforms["paper"], view.paper[0] / 255, view.paper[1] / 255, view.paper[2] / 255);
    gl.uniformMatrix3fv(uniforms["turn"], false, view.turn);
    gl.uniform1f(uniforms["room"], view.room);
    gl.uniform1f(uniforms["thumb"], thumb);
    if (thumb === 0 || !this.sheet) return;
    gl.uniform2f(uniforms["sheetSize"], this.sheet.bitmap.width, this.sheet.bitmap.height);
    gl.uniform1f(uniforms["frame"], view.tinted ? 0 : Math.max(1, Math.min(3 * ratio, thumb * 0.09)));
    gl.uniform1f(uniforms["tinted"], view.tinted ? 0.5 : 0);
  }

  private build(): void {
    const { gl } = this;
    this.square = link(gl, SQUARE);
    this.round = link(gl, ROUND);
    this.patch = link(gl, PATCH);
    this.list = gl.createBuffer();
    this.listed = undefined;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.list);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribIPointer(0, 1, gl.UNSIGNED_INT, 0, 0);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    const texture = () => gl.createTexture();
    this.textures = {
      places: texture(),
      norms: texture(),
      scale: texture(),
      own: texture(),
      cells: texture(),
      boxes: texture(),
      sheet: texture(),
    };
    gl.activeTexture(gl.TEXTURE2);
    gl.bindTexture(gl.TEXTURE_2D, this.textures.scale);
    nearest(gl);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Send all data to the graphics memory: at the start, and again after a loss of the context. */
  private upload(): void {
    if (!this.data) return;
    const { gl, data } = this;
    this.textures.places = this.table(gl.TEXTURE0, this.textures.places, data.places, data.dims);
    this.textures.norms = this.table(gl.TEXTURE1, this.textures.norms, this.norms ?? new Uint8Array(1), 1);
    this.sendOwn();
    this.setScale(this.scale);
    if (this.sheet) this.setSheet(this.sheet);
  }

  private sendOwn(): void {
    this.textures.own = this.table(this.gl.TEXTURE3, this.textures.own, this.own, 2);
  }

  /** Store a long list in a texture of fixed width; complete rows are sent without a copy. */
  private table(
    unit: number,
    old: WebGLTexture,
    list: Uint16Array | Uint8Array | Float32Array,
    parts: number,
  ): WebGLTexture {
    const { gl } = this;
    const count = list.length / parts;
    const rows = Math.max(1, Math.ceil(count / WIDE));
    if (rows > (gl.getParameter(gl.MAX_TEXTURE_SIZE) as number)) {
      throw new Error(
        `${count.toLocaleString("en")} points are more than this graphics card can hold; lay out fewer tokens`,
      );
    }
    const texture = gl.createTexture();
    gl.deleteTexture(old);
    gl.activeTexture(unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    nearest(gl);
    const [inside, format, type] = this.kind(list, parts);
    gl.texStorage2D(gl.TEXTURE_2D, 1, inside, WIDE, rows);
    const whole = Math.floor(count / WIDE);
    if (whole > 0) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, WIDE, whole, format, type, list, 0);
    if (count > whole * WIDE)
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, whole, count - whole * WIDE, 1, format, type, list, whole * WIDE * parts);
    return texture;
  }

  private kind(list: Uint16Array | Uint8Array | Float32Array, parts: number): [number, number, number] {
    const { gl } = this;
    if (list instanceof Float32Array) return [gl.RGBA32F, gl.RGBA, gl.FLOAT];
    if (list instanceof Uint8Array)
      return parts === 1 ? [gl.R8, gl.RED, gl.UNSIGNED_BYTE] : [gl.RG8UI, gl.RG_INTEGER, gl.UNSIGNED_BYTE];
    if (parts === 4) return [gl.RGBA16UI, gl.RGBA_INTEGER, gl.UNSIGNED_SHORT];
    return parts === 2
      ? [gl.RG16UI, gl.RG_INTEGER, gl.UNSIGNED_SHORT]
      : [gl.RGB16UI, gl.RGB_INTEGER, gl.UNSIGNED_SHORT];
  }
}

function nearest(gl: WebGL2RenderingContext): void {
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
}

interface Program {
  program: WebGLProgram;
  uniforms: Record<string, WebGLUniformLocation | null>;
}

function link(gl: WebGL2RenderingContext, fragment: string): Program {
  const program = gl.createProgram();
  for (const [kind, text] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(kind) as WebGLShader;
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new NoWebGL(
      `the WebGL2 of this browser cannot run the map's program; try another browser (${gl.getProgramInfoLog(program) ?? "no reason given"})`,
    );
  }
  const uniforms: Program["uniforms"] = {};
  const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) as number;
  for (let at = 0; at < count; at++) {
    const name = gl.getActiveUniform(program, at)?.name ?? "";
    uniforms[name] = gl.getUniformLocation(program, name);
  }
  gl.useProgram(program);
  ["places", "norms", "scale", "own", "cells", "boxes", "sheet"].forEach((name, unit) =>
    gl.uniform1i(uniforms[name], unit),
  );
  return { program, uniforms };
}
