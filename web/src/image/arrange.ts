// Where are pictures and their patches on the canvas?
import { inside, type Cover, type Patch } from "./patches";

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

const GAP = 14;

/** Place the pictures as large as possible in a grid, each in the middle of its cell. */
export function arrange(aspects: readonly number[], width: number, height: number): Rect[] {
  let best: Rect[] = [];
  for (let across = 1; across <= aspects.length; across++) {
    const tried = inRows(aspects, across, width, height);
    if (area(tried) > area(best)) best = tried;
  }
  return best;
}

const area = (rects: Rect[]): number => rects.reduce((sum, rect) => sum + rect.width * rect.height, 0);

function inRows(aspects: readonly number[], across: number, width: number, height: number): Rect[] {
  const down = Math.ceil(aspects.length / across);
  const wide = (width - GAP * (across + 1)) / across;
  const high = (height - GAP * (down + 1)) / down;
  if (wide <= 0 || high <= 0) return [];
  return aspects.map((aspect, at) => {
    const own = Math.min(wide, high * aspect);
    const x = GAP + (at % across) * (wide + GAP) + (wide - own) / 2;
    const y = GAP + Math.floor(at / across) * (high + GAP) + (high - own / aspect) / 2;
    return { x, y, width: own, height: own / aspect };
  });
}

/** Get the place of a patch, cut at the border of the picture. */
export function patchRect(patch: Omit<Patch, "position" | "image">, on: Rect): Rect {
  const within = (value: number) => Math.min(1, Math.max(0, value));
  const [left, top] = [on.x + within(patch.left) * on.width, on.y + within(patch.top) * on.height];
  return {
    x: left,
    y: top,
    width: on.x + within(patch.right) * on.width - left,
    height: on.y + within(patch.bottom) * on.height - top,
  };
}

/** Get the patch at a pixel; of several, the smallest. */
export function patchAt(covers: readonly Cover[], rects: readonly Rect[], x: number, y: number): Patch | undefined {
  for (const [at, rect] of rects.entries()) {
    const [u, v] = [(x - rect.x) / rect.width, (y - rect.y) / rect.height];
    if (u < 0 || v < 0 || u > 1 || v > 1) continue;
    return covers[at].patches.find((patch) => inside(patch, u, v));
  }
  return undefined;
}
