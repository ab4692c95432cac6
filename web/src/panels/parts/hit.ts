// Which line is under the cursor?
import type { LineSet } from "../../draw/batch";
import type { Place } from "../../draw/painter";

export interface Hit {
  set: number;
  from: number;
  to: number;
  weight: number;
}

/** Get the line of the largest weight within a few pixels of a point, or null. */
export function lineAt(sets: LineSet[], place: Place, x: number, y: number): Hit | null {
  const share = (x - place.x0) / (place.x1 - place.x0);
  const row = (y + place.top) / place.row - 0.5;
  const near = 3 / place.row;
  let best: Hit | null = null;
  sets.forEach(({ lines }, set) => {
    for (let at = 0; at < lines.count; at++) {
      const height = lines.from[at] + (lines.to[at] - lines.from[at]) * share;
      if (height - row > near || row - height > near) continue;
      if (Math.abs(lines.weight[at]) > Math.max(0.004, Math.abs(best?.weight ?? 0))) {
        best = { set, from: lines.from[at], to: lines.to[at], weight: lines.weight[at] };
      }
    }
  });
  return best;
}
