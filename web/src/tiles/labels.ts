// Which tokens are named beside an axis?

export interface Label {
  position: number;
  /** Pixels from the start of the axis to the middle of the token. */
  at: number;
}

/** Pixels that one line of text needs. */
export const LINE = 14;

/** Get the distance of named tokens: 1, 2, 5, 10, 20, 50 …, such that their names do not overlap. */
export function stepFor(cell: number, line = LINE): number {
  for (let power = 1; ; power *= 10) {
    for (const step of [power, 2 * power, 5 * power]) if (step * cell >= line) return step;
  }
}

/** List the named tokens of an axis: `first` is the token at its start, `pixels` its length. */
export function labelsOn(first: number, cell: number, pixels: number, count: number): Label[] {
  const step = stepFor(cell);
  const end = Math.min(count, first + pixels / cell);
  const out: Label[] = [];
  for (let position = Math.ceil(first / step) * step; position < end; position += step) {
    const at = (position + 0.5 - first) * cell;
    if (at <= pixels) out.push({ position, at });
  }
  return out;
}
