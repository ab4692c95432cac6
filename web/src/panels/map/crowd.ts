// How is one head drawn when it has more points than a screen can show? By density, or, where few are in view, by dots.
import { css, PAPER } from "../../draw/colour";
import { countPoints, drawDots, shadePixels, type Shades } from "../../draw/density";
import { sized } from "../../draw/painter";
import { onScreen, type Size } from "../../map/camera";
import { inWindow, nearestSlot, pixelOf, projection, type Crowd, type Projection } from "../../map/crowd";
import { HIGH, placed } from "../../map/labels";
import { clipped, MONO } from "./overlay";
import type { Stage } from "./stage";

/** At most this many points in view are drawn one by one. */
export const FEW = 30_000;
/** At most this many pixels of the screen are counted apart. */
const MOST_PIXELS = 3_000_000;
/** At most this many points have names, and are counted while the map moves. */
const NAMED = 600;
const IN_MOTION = 400_000;
const REACH = 7;
const PICKED = "#FFC300";

/** What is drawn: the points and their colours, and the numbers of points with a ring. */
export interface CrowdView {
  crowd: Crowd;
  shades: Shades;
  dark: boolean;
  names: ((at: number) => string) | null;
  hover: number;
  picked: number;
}

export interface Seen {
  /** Points in view if they are drawn one by one; −1 if by density. */
  dots: number;
  /** Points counted on the picture. */
  counted: number;
}

export class CrowdPainter {
  private sums = new Uint32Array(0);
  private kept: { name: string; shades: Shades; picture: ImageData; seen: Seen; slots: Uint32Array | null } | undefined;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** Draw the head in view; `moves`: fewer points are counted. */
  paint(stage: Stage, view: CrowdView, moves: boolean): Seen {
    const { size } = stage;
    const ratio = this.ratioOf(stage);
    const pixels = {
      width: Math.max(1, Math.round(size.width * ratio)),
      height: Math.max(1, Math.round(size.height * ratio)),
    };
    const by = this.projected(stage, view.crowd, ratio);
    const name = JSON.stringify([by, pixels, view.dark, moves]);
    if (this.kept?.name !== name || this.kept.shades !== view.shades)
      this.kept = { name, shades: view.shades, ...this.drawn(view, by, pixels, moves) };
    const context = sized(this.canvas, size.width, size.height, ratio);
    context.putImageData(this.kept.picture, 0, 0);
    const css = this.projected(stage, view.crowd, 1);
    if (this.kept.slots && view.names) this.write(context, view, css, size, this.kept.slots);
    this.rings(context, view, css);
    return this.kept.seen;
  }

  /** Get the number of the point at a pixel, or −1. */
  at(stage: Stage, crowd: Crowd, x: number, y: number): number {
    const slot = nearestSlot(crowd, this.projected(stage, crowd, 1), x, y, REACH);
    return slot < 0 ? -1 : crowd.order[slot];
  }

  private ratioOf({ size, ratio }: Stage): number {
    return size.width * size.height * ratio * ratio > MOST_PIXELS ? 1 : ratio;
  }

  private projected(stage: Stage, crowd: Crowd, ratio: number): Projection {
    const corner = onScreen(stage.camera, stage.plane.corners[stage.head]);
    const shape = stage.data?.shapes[stage.head] ?? [1, 1, 1];
    const scaled = { x: corner.x * ratio, y: corner.y * ratio };
    return projection(crowd, scaled, stage.camera.scale * ratio, shape, stage.orbit);
  }

  private drawn({ crowd, shades, dark }: CrowdView, by: Projection, pixels: Size, moves: boolean) {
    const picture = new ImageData(pixels.width, pixels.height);
    const paper = PAPER[dark ? "dark" : "light"];
    const slots = inWindow(crowd, by, pixels, FEW);
    if (slots) {
      new Uint32Array(picture.data.buffer).fill((0xff000000 | (paper[2] << 16) | (paper[1] << 8) | paper[0]) >>> 0);
      drawDots(picture.data, crowd, by, pixels, slots, shades, dotFor(pixels, slots.length));
      return { picture, slots, seen: { dots: slots.length, counted: slots.length } };
    }
    const length = 4 * pixels.width * pixels.height;
    if (this.sums.length === length) this.sums.fill(0);
    else this.sums = new Uint32Array(length);
    const every = moves ? Math.max(1, Math.ceil(crowd.count / IN_MOTION)) : 1;
    const counted = countPoints(this.sums, crowd, by, pixels, shades, every);
    shadePixels(picture.data, this.sums, pixels.width, paper, shades.marks !== null);
    if (shades.marks) drawDots(picture.data, crowd, by, pixels, slotsOf(shades.marks), shades, 2.5, true);
    return { picture, slots, seen: { dots: -1, counted } };
  }

  private write(
    context: CanvasRenderingContext2D,
    { crowd, names, dark }: CrowdView,
    by: Projection,
    size: Size,
    slots: Uint32Array,
  ): void {
    context.font = MONO;
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = css(PAPER[dark ? "dark" : "light"]);
    context.fillStyle = dark ? "#e6e7ea" : "#1b1d22";
    const step = Math.max(1, Math.ceil(slots.length / NAMED));
    const some = slots.filter((_, at) => at % step === 0);
    const wishes = Array.from(some, (slot) => {
      const text = clipped(names?.(crowd.order[slot]) ?? "");
      return { at: slot, ...pixelOf(crowd, by, slot), text, width: context.measureText(text).width };
    });
    for (const label of placed(wishes, size.width, size.height, 90)) {
      context.strokeText(label.text, label.left, label.top + HIGH / 2);
      context.fillText(label.text, label.left, label.top + HIGH / 2);
    }
  }

  private rings(context: CanvasRenderingContext2D, view: CrowdView, by: Projection): void {
    for (const [at, colour, width] of [
      [view.picked, PICKED, 3],
      [view.hover, view.dark ? "#e6e7ea" : "#1b1d22", 1.5],
    ] as const) {
      const slot = at < 0 ? -1 : view.crowd.order.indexOf(at);
      if (slot < 0) continue;
      const { x, y } = pixelOf(view.crowd, by, slot);
      context.beginPath();
      context.arc(x, y, 6.5, 0, 2 * Math.PI);
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.stroke();
    }
  }
}

/** Get the diameter of a dot: the fewer points are in view, the larger. */
const dotFor = ({ width, height }: Size, count: number): number =>
  Math.min(9, Math.max(1.5, 0.45 * Math.sqrt((width * height) / Math.max(1, count))));

function slotsOf(marks: Uint8Array): Uint32Array {
  let count = 0;
  for (const mark of marks) count += mark;
  const out = new Uint32Array(count);
  let at = 0;
  for (let slot = 0; slot < marks.length; slot++) if (marks[slot]) out[at++] = slot;
  return out;
}
