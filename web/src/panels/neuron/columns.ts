// Where the columns of the neuron view stand, from the token that looks to the tokens looked at.

export interface Columns {
  /** Width of one neuron's cell. */
  cell: number;
  tokens: number;
  query: number;
  fan: { from: number; to: number };
  key: number;
  product: number;
  dot: number;
  soft: number;
  value: number | null;
  moved: number | null;
  /** Where the tokens looked at begin. */
  end: number;
  strip: number;
  bar: number;
  width: number;
}

const GAP = 14;

export function columnsFor(width: number, neurons: number, left: number, right: number, values: boolean): Columns {
  const strips = values ? 4 : 3;
  const bars = values ? 3 : 2;
  const fan = values ? 48 : 64;
  const bar = values ? 80 : 96;
  const fixed = left + right + fan + bars * bar + (strips + bars) * GAP;
  const cell = Math.max(1.5, Math.min(7, (width - fixed) / (strips * neurons)));
  const strip = cell * neurons;
  const query = left;
  const key = query + strip + fan;
  const product = key + strip + GAP;
  const dot = product + strip + GAP;
  const soft = dot + bar + GAP;
  const value = values ? soft + bar + GAP : null;
  const moved = value === null ? null : value + strip + GAP;
  const end = (moved ?? soft) + bar + GAP;
  return {
    cell,
    tokens: 0,
    query,
    fan: { from: query + strip, to: key },
    key,
    product,
    dot,
    soft,
    value,
    moved,
    end,
    strip,
    bar,
    width: end + right,
  };
}

/** Where colour is full: nearly the largest size, so that one outlier does not bleach the rest. */
export function fullAt(numbers: Float32Array): number {
  const step = Math.max(1, Math.floor(numbers.length / 20_000));
  const sizes = new Float32Array(Math.ceil(numbers.length / step));
  for (let at = 0; at < sizes.length; at++) sizes[at] = Math.abs(numbers[at * step]);
  sizes.sort();
  return sizes[Math.floor(0.98 * (sizes.length - 1))] || 1e-6;
}
