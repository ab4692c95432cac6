// Which panels of the map are in view, how does the camera move, and when is a frame drawn?
import { PAPER } from "../../draw/colour";
import { Cloud, type Cell, type CloudSheet, type CloudView } from "../../draw/cloud";
import {
  between,
  fitOne,
  flatten,
  fromNumbers,
  onScreen,
  orbitBy,
  roomOf,
  single,
  START_ORBIT,
  toNumbers,
  turning,
  zoomAt,
  type Camera,
  type Orbit,
  type Size,
} from "../../map/camera";
import type { Colouring } from "../../map/colouring";
import { normSpan, type MapData, type Norms } from "../../map/data";
import { gridOf, nearest, type Grid } from "../../map/grid";
import { fitAll, fromAddress, headAt, middleHead, moved, planeFor, toAddress, type Plane } from "../../map/plane";
import { everyPoint, sift } from "../../map/sift";
import { thumbSize, typicalWidth } from "../../map/thumbs";
import type { Picks } from "../../source/wire";

const MOTION = 180;
const STILL = 140;
/** After a frame slower than SLOW ms the next one draws fewer points, after one faster than FAST more. */
const SLOW = 34;
const FAST = 20;
const LEAST = 30_000;
const MOST = 6_000_000;
const DEEPEST = 60;
/** How much of a dimmed head is left. */
const FADED = 0.3;

export interface StageNews {
  /** The camera stopped, or zoomed into or out of a head. `numbers` is null while everything is in view. */
  moved(head: number, numbers: number[] | null): void;
  /** The first or a finer sheet of pictures is needed for what is on screen. */
  wants(sheet: number): void;
  /** A frame was drawn; `whole` tells whether it has all points. */
  painted(whole: boolean): void;
}

export class Stage {
  readonly cloud: Cloud;
  data: MapData | undefined;
  /** The places of the panels in this window. */
  plane: Plane = planeFor([], [], { width: 0, height: 0 });
  size: Size = { width: 0, height: 0 };
  camera: Camera = { x: 0, y: 0, scale: 1 };
  orbit: Orbit = START_ORBIT;
  /** Number of the head that fills the view, or −1. */
  head = -1;
  /** Whether the camera shows everything, and is to do so when the window changes. */
  fits = true;
  dark = false;
  /** Heads that are dimmed among all heads, by number. */
  faded: ReadonlySet<number> = new Set();
  dim = 0;
  byNorm = false;
  bySize = false;
  scaled = false;
  patches: Picks["patches"] = "off";
  /** The sheets that the atlas has, coarse first, and the number of the one in use. */
  sheets: readonly { side: number }[] = [];
  private sheet = -1;
  private norms: Norms | undefined;
  private clear = 1;
  private dirty = false;
  private unfinished = false;
  /** Whether only a sample is on screen. */
  private sampled = false;
  private touched = false;
  private asked = 0;
  private movedAt = -Infinity;
  private lastFrame = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private way: { from: Camera; to: Camera; start: number; clear: number } | undefined;
  private grids = new Map<string, Grid>();
  private marks: Uint8Array | null = null;
  /** Numbers of the points to draw while nothing moves, and the view that they were chosen for. */
  private chosen: { name: string; list: Uint32Array } | undefined;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly news: StageNews,
  ) {
    this.cloud = new Cloud(canvas, () => this.redraw());
  }

  get ratio(): number {
    return Math.min(2, window.devicePixelRatio || 1);
  }

  /** Whether one head fills the view and the others have faded. */
  get entered(): boolean {
    return this.head >= 0 && !this.way && this.clear === 0;
  }

  close(): void {
    cancelAnimationFrame(this.asked);
    clearTimeout(this.rest);
    this.cloud.close();
  }

  load(data: MapData, plane: Plane): void {
    this.data = data;
    this.plane = plane;
    this.norms = undefined;
    this.marks = null;
    this.chosen = undefined;
    this.grids.clear();
    this.sheet = -1;
    this.cloud.load(data);
    this.redraw();
  }

  paint({ values, scale, byNorm }: Colouring): void {
    this.cloud.setValues(values);
    this.cloud.setScale(scale);
    this.byNorm = byNorm;
    this.redraw();
  }

  mark(marks: Uint8Array | null): void {
    if (!this.data) return;
    this.cloud.setMarks(marks ?? new Uint8Array(this.data.points));
    this.dim = marks ? 0.82 : 0;
    this.marks = marks;
    this.chosen = undefined;
    this.redraw();
  }

  /** Use a sheet of pictures that has arrived. */
  show(level: number, sheet: CloudSheet): void {
    this.sheet = level;
    this.cloud.setSheet(sheet);
    this.redraw();
  }

  /** Side of a patch on screen; 0 where dots are drawn: zoomed out, switched off, or no pictures yet. */
  get thumb(): number {
    const { data, patches } = this;
    if (!data?.box || patches === "off" || this.sheets.length === 0) return 0;
    return thumbSize(this.camera.scale, data.points);
  }

  /** Whether patches are drawn rather than dots. */
  get patched(): boolean {
    return this.thumb > 0 && this.sheet >= 0;
  }

  isPatch(at: number): boolean {
    return (this.data?.image?.[at] ?? -1) >= 0;
  }

  /** Ask for the coarsest sheet with as many pixels of a patch as the screen, if it is finer than the one in use. */
  private askSheet(): void {
    const { thumb } = this;
    if (thumb === 0 || !this.data?.box) return;
    const share = typicalWidth(this.data.box);
    const enough = this.sheets.findIndex(({ side }) => side * share >= thumb * this.ratio);
    const level = enough < 0 ? this.sheets.length - 1 : enough;
    if (level > this.sheet) this.news.wants(level);
  }

  measured(norms: Norms | undefined): void {
    if (norms && norms !== this.norms) this.cloud.setNorms(norms.values);
    this.norms = norms;
    this.redraw();
  }

  resize(size: Size, plane: Plane): void {
    // The panel in the middle stays in the middle, even if it has another place now.
    const anchor = this.head >= 0 ? this.head : middleHead(this.plane, this.camera, this.size);
    const [from, to] = [this.plane.corners[anchor], plane.corners[anchor]];
    if (!this.fits && from && to) this.camera = moved(this.camera, from, to);
    this.size = size;
    this.plane = plane;
    this.cloud.resize(size.width, size.height, this.ratio);
    // A camera that is moving goes to the target of the new window.
    if (this.fits && this.way) this.way.to = this.fitting();
    else if (this.fits) this.camera = this.fitting();
    this.redraw();
  }

  /** Get the camera that shows all heads, or all of the head in view. */
  fitting(): Camera {
    const { data, plane, size } = this;
    if (!data) return this.camera;
    return this.head >= 0 ? fitOne(plane.corners[this.head], size) : fitAll(plane, size);
  }

  /** Go to a head or to the camera of an address; `motion`: with an animation. */
  go(head: number, numbers: readonly number[] | null, motion: boolean): void {
    const { data, plane, size } = this;
    if (!data) return;
    const before = this.head;
    this.head = head;
    const stays = numbers !== null && this.fits === false && before >= 0 && head >= 0 && before !== head;
    if (numbers?.length === 5) this.orbit = { turn: numbers[3], tilt: numbers[4] };
    else if (!motion) this.orbit = START_ORBIT;
    this.fits = numbers === null;
    let to = numbers === null ? this.fitting() : fromAddress(plane, data.spots, fromNumbers(numbers, size), size, head);
    // A neighbouring head is shown at the same zoom and offset.
    if (stays) to = moved(this.camera, plane.corners[before], plane.corners[head]);
    const calm = !motion || stays || matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.way = calm ? undefined : { from: this.camera, to, start: performance.now(), clear: this.clear };
    if (calm) {
      this.camera = to;
      this.clear = head >= 0 ? 0 : 1;
    }
    if (stays) this.tell();
    this.redraw();
  }

  wheel(x: number, y: number, factor: number): void {
    const { data, plane, size } = this;
    if (!data) return;
    this.way = undefined;
    const all = fitAll(plane, size);
    const least = Math.min(all.scale, fitOne(plane.corners[0], size).scale);
    this.camera = zoomAt(this.camera, x, y, factor, least, DEEPEST * Math.min(size.width, size.height));
    this.fits = false;
    const inside = single(this.head >= 0, this.camera, size);
    if (inside && this.head < 0) this.head = this.headAt(x, y);
    else if (!inside) this.head = -1;
    if (this.head < 0 && this.camera.scale <= all.scale * 1.001 && factor < 1) {
      this.camera = all;
      this.fits = true;
    }
    this.moving();
  }

  pan(dx: number, dy: number): void {
    this.way = undefined;
    this.camera = { ...this.camera, x: this.camera.x - dx, y: this.camera.y - dy };
    this.fits = false;
    this.moving();
  }

  turn(dx: number, dy: number): void {
    this.orbit = orbitBy(this.orbit, dx * 0.008, dy * 0.008);
    this.moving();
  }

  /** Get the number of the head at a pixel, or −1. */
  headAt(x: number, y: number): number {
    return headAt(this.plane, this.camera, x, y);
  }

  /** Get the point of a panel at a pixel, or −1. */
  pointAt(head: number, x: number, y: number, reach = Math.max(7, this.thumb / 2)): number {
    const { data, camera, plane } = this;
    if (!data || head < 0) return -1;
    const corner = onScreen(camera, plane.corners[head]);
    return nearest(this.grid(head), (x - corner.x) / camera.scale, (y - corner.y) / camera.scale, reach / camera.scale);
  }

  /** Get the points of a panel sorted into squares; computed when first needed, and again after a turn. */
  grid(head: number): Grid {
    const data = this.data as MapData;
    const name = data.dims < 3 ? String(head) : `${head} ${this.orbit.turn} ${this.orbit.tilt}`;
    let grid = this.grids.get(name);
    if (!grid) {
      grid = gridOf(flatten(data.places, head * data.points, data.points, data.dims, data.shapes[head], this.orbit));
      if (this.grids.size > 40) this.grids.clear();
      this.grids.set(name, grid);
    }
    return grid;
  }

  /** Get the place of a point on screen. */
  where(head: number, at: number): { x: number; y: number } {
    const { flat } = this.grid(head);
    const corner = onScreen(this.camera, this.plane.corners[head]);
    return { x: corner.x + flat.x[at] * this.camera.scale, y: corner.y + flat.y[at] * this.camera.scale };
  }

  /** List the panels in view; those beside an entered head fade. */
  cells(): Cell[] {
    const { data, camera, plane, size } = this;
    const out: Cell[] = [];
    if (!data) return out;
    plane.corners.forEach((corner, head) => {
      const { x, y } = onScreen(camera, corner);
      const clear = head === this.head ? 1 : this.clear * (this.faded.has(head) ? FADED : 1);
      if (clear <= 0.01 || x > size.width || y > size.height || x + camera.scale < 0 || y + camera.scale < 0) return;
      const span = this.norms ? normSpan(this.norms, data, head, this.scaled) : ([0, 1, 0, 1] as const);
      out.push({ head, x, y, clear, shape: data.shapes[head], span });
    });
    return out;
  }

  redraw(): void {
    this.dirty = true;
    this.ask();
  }

  /** Draw only what is over the points. */
  touch(): void {
    this.touched = true;
    this.ask();
  }

  private moving(): void {
    this.movedAt = performance.now();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.redraw();
      this.tell();
    }, STILL);
    this.redraw();
  }

  private tell(): void {
    const { data, plane, camera, size, orbit, head } = this;
    const plain = !data || (this.fits && orbit === START_ORBIT);
    this.news.moved(head, plain ? null : toNumbers(toAddress(plane, data.spots, camera, size, head), size, orbit));
  }

  private ask(): void {
    cancelAnimationFrame(this.asked);
    this.asked = requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    const walking = this.walk(performance.now());
    const moves = walking || performance.now() - this.movedAt < STILL;
    if (moves && this.dirty) this.learn(now);
    this.lastFrame = now;
    if (this.dirty) {
      this.dirty = false;
      const view = this.view();
      this.askSheet();
      this.unfinished = !this.cloud.draw(view, moves ? this.sample(view) : this.all(view), this.ratio);
      this.sampled = moves;
      this.news.painted(!this.unfinished && !moves);
    } else if (this.unfinished && !moves) {
      this.unfinished = !this.cloud.more();
      if (!this.unfinished) this.news.painted(true);
    } else if (this.touched) this.news.painted(!this.unfinished && !this.sampled);
    this.touched = false;
    if (walking || (this.sampled && !moves)) this.redraw();
    else if (this.unfinished && !moves) this.ask();
  }

  private sample({ cells }: CloudView): Uint32Array {
    return this.data ? everyPoint(cells, this.data, Math.floor(this.cloud.budget)) : new Uint32Array(0);
  }

  private all({ cells, side, room }: CloudView): Uint32Array {
    const { data, ratio } = this;
    if (!data) return new Uint32Array(0);
    const name = JSON.stringify([this.camera, this.orbit, this.size, this.head, cells.length, ratio]);
    if (this.chosen?.name !== name) {
      const places = cells.map((cell) => ({ ...cell, x: cell.x * ratio, y: cell.y * ratio }));
      this.chosen = { name, list: sift(places, data, side * ratio, room, this.orbit, this.marks) };
    }
    return this.chosen.list;
  }

  private learn(now: number): void {
    const took = now - this.lastFrame;
    if (took > 500) return;
    const by = took > SLOW ? Math.max(0.35, FAST / took) : took < FAST ? 1.25 : 1;
    this.cloud.budget = Math.round(Math.min(MOST, Math.max(LEAST, this.cloud.budget * by)));
  }

  /** Move the camera one step; return whether it still moves. */
  private walk(now: number): boolean {
    const aim = this.head >= 0 ? 0 : 1;
    if (!this.way) {
      const off = aim - this.clear;
      if (Math.abs(off) < 0.02) {
        this.dirty ||= off !== 0;
        this.clear = aim;
        return false;
      }
      this.clear += Math.sign(off) * Math.min(Math.abs(off), 0.2);
      this.dirty = true;
      return true;
    }
    const share = Math.min(1, (now - this.way.start) / MOTION);
    const eased = share * share * (3 - 2 * share);
    this.camera = between(this.way.from, this.way.to, eased);
    this.clear = this.way.clear + (aim - this.way.clear) * eased;
    this.dirty = true;
    if (share < 1) return true;
    this.way = undefined;
    return false;
  }

  private view(): CloudView {
    const dims = this.data?.dims ?? 2;
    const { scale } = this.camera;
    return {
      cells: this.cells(),
      side: scale,
      size: dotSize(scale, this.data?.points ?? 0),
      dim: this.dim,
      paper: PAPER[this.dark ? "dark" : "light"],
      turn: turning(this.orbit, dims),
      room: roomOf(dims),
      normColour: this.byNorm,
      normSize: this.bySize && this.head >= 0,
      thumb: this.sheet < 0 ? 0 : this.thumb,
      tinted: this.patches === "fill",
    };
  }
}

/** Get the diameter of a dot: it grows slower than the panel, and is smaller where there are many points. */
export function dotSize(side: number, points: number): number {
  const crowd = Math.min(1.6, Math.max(0.55, Math.sqrt(2000 / Math.max(1, points))));
  return Math.min(11, Math.max(1, crowd * 0.21 * Math.sqrt(side)));
}
