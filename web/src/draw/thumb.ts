// How is the thumbnail of a head drawn? Directly into pixels, so that its cost does not depend on the tokens.
import type { HeadRows } from "../weights/rows";
import { bent, type Rgb } from "./colour";

/**
 * Compute the ink of each pixel (width·height) for all lines. Tokens of the same pixel row share a line,
 * so 512 tokens cost no more than the height of the thumbnail.
 */
export function ink(head: HeadRows, width: number, height: number): Float32Array {
  const bins = new Float32Array(height * height);
  const rows = Math.max(head.n, head.m);
  const place = Uint32Array.from({ length: rows }, (_, at) =>
    Math.min(height - 1, Math.floor(((at + 0.5) * height) / rows)),
  );
  const share = Math.min(1, height / rows);
  const { n, k, weight, index } = head;
  for (let row = 0; row < n; row++) {
    const start = place[row] * height;
    for (let at = row * k; at < (row + 1) * k; at++) bins[start + place[index[at]]] += weight[at] * share;
  }
  return lay(bins, width, height);
}

function lay(bins: Float32Array, width: number, height: number): Float32Array {
  const out = new Float32Array(width * (height + 1)); // one more row, so that no bound is checked in the loop
  for (let from = 0; from < height; from++) {
    for (let to = 0; to < height; to++) {
      const weight = bins[from * height + to];
      if (weight < 0.004 && weight > -0.004) continue;
      const step = (to - from) / Math.max(1, width - 1);
      let y = from;
      // Each step is divided between two pixels, so that slanted lines are smooth.
      for (let x = 0; x < width; x++, y += step) {
        const row = y | 0;
        const place = row * width + x;
        const lower = weight * (y - row);
        out[place] += weight - lower;
        out[place + width] += lower;
      }
    }
  }
  return out.subarray(0, width * height);
}

/** Opacity of ink, by the root of its depth in 1024ths: small depths differ most. One line is clear, many are not solid. */
const DEEPEST = 4;
let opacities: Uint8Array | undefined; // made when the first thumbnail is drawn
const makeOpacities = (): Uint8Array =>
  Uint8Array.from({ length: 1024 * Math.sqrt(DEEPEST) + 1 }, (_, at) =>
    Math.round(255 * (1 - Math.exp(-1.6 * bent((at / 1024) ** 2)))),
  );

/** Convert ink to pixels: colour by sign, opacity by depth. */
export function tinted(inked: Float32Array, colour: Rgb, below: Rgb, out: Uint8ClampedArray): void {
  const opacity = (opacities ??= makeOpacities());
  let sum = 0;
  for (const value of inked) sum += Math.abs(value);
  // Very many lines would be a solid block; fainter lines still show a pattern.
  const strength = Math.min(1, (0.3 * inked.length) / Math.max(1e-9, sum));
  for (let at = 0; at < inked.length; at++) {
    const value = inked[at] * strength;
    if (value === 0) continue;
    const tint = value > 0 ? colour : below;
    out[4 * at] = tint[0];
    out[4 * at + 1] = tint[1];
    out[4 * at + 2] = tint[2];
    out[4 * at + 3] = opacity[Math.min(opacity.length - 1, (1024 * Math.sqrt(Math.abs(value)) + 0.5) | 0)];
  }
}
