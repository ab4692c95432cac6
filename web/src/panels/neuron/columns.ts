// Where are the columns of the Neurons view?

export interface Columns {
  /** Width of one cell, and the number of neurons in it: more than one where not all fit. */
  cell: number;
  gather: number;
  query: number;
  fan: { from: number; to: number };
  key: number;
  product: number;
  dot: number;
  soft: number;
  value: number | null;
  moved: number | null;
  /** Start of the column of tokens looked at. */
  end: number;
  strip: number;
  bar: number;
  width: number;
}

/** Narrower cells cannot be distinguished. */
const NARROWEST = 1.5;
const WIDEST = 7;
/** The same where a few directions are shown instead of neurons. */
export const WIDEST_DIRECTION = 26;
/** The smallest number of cells in a strip. */
const FEWEST = 16;

/** Widths between the strips of neurons, in pixels. */
const ROOMY = { fan: 64, bar: 96, gap: 14 };
const CLOSE = { fan: 48, bar: 80, gap: 14 };
const TIGHT = { fan: 28, bar: 60, gap: 6 };

/** Compute columns that fit the width; neurons share cells until the sums are in view too. */
export function columnsFor(
  width: number,
  neurons: number,
  left: number,
  right: number,
  values: boolean,
  widest = WIDEST,
): Columns {
  const strips = values ? 4 : 3;
  const bars = values ? 3 : 2;
  const { fan, bar, gap } = width < 760 ? TIGHT : values ? CLOSE : ROOMY;
  const room = (width - left - right - fan - bars * bar - (strips + bars) * gap) / strips;
  const gather = Math.ceil(neurons / Math.max(FEWEST, room / NARROWEST));
  const cells = Math.ceil(neurons / gather);
  const cell = Math.max(NARROWEST, Math.min(widest, room / cells));
  const strip = cell * cells;
  const query = left;
  const key = query + strip + fan;
  const product = key + strip + gap;
  const dot = product + strip + gap;
  const soft = dot + bar + gap;
  const value = values ? soft + bar + gap : null;
  const moved = value === null ? null : value + strip + gap;
  const end = (moved ?? soft) + bar + gap;
  const fans = { from: query + strip, to: key };
  return { cell, gather, query, fan: fans, key, product, dot, soft, value, moved, end, strip, bar, width: end + right };
}

/** Compute the number of full colour: a bit below the largest, so that one outlier does not make the others pale. */
export function fullAt(numbers: Float32Array): number {
  const step = Math.max(1, Math.floor(numbers.length / 20_000));
  const sizes = new Float32Array(Math.ceil(numbers.length / step));
  for (let at = 0; at < sizes.length; at++) sizes[at] = Math.abs(numbers[at * step]);
  sizes.sort();
  return sizes[Math.floor(0.98 * (sizes.length - 1))] || 1e-6;
}
