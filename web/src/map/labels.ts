// Which points get a name, so that no name covers another?

export interface Wish {
  at: number;
  x: number;
  y: number;
  text: string;
  width: number;
}

export interface Label extends Wish {
  /** Upper left corner of the text. */
  left: number;
  top: number;
}

export const HIGH = 14;
const GAP = 2;

/** Place names in order, each right of its point, else left, above or below; a name without room is left out. */
export function placed(wishes: readonly Wish[], width: number, height: number, most = 400): Label[] {
  const taken = new Map<number, Label[]>();
  const out: Label[] = [];
  for (const wish of wishes) {
    if (out.length >= most) break;
    for (const [left, top] of corners(wish)) {
      if (left < 0 || top < 0 || left + wish.width > width || top + HIGH > height) continue;
      const label = { ...wish, left, top };
      if (!free(label, taken)) continue;
      for (const band of bands(label)) taken.set(band, [...(taken.get(band) ?? []), label]);
      out.push(label);
      break;
    }
  }
  return out;
}

function corners({ x, y, width }: Wish): [number, number][] {
  return [
    [x + 6, y - HIGH / 2],
    [x - 6 - width, y - HIGH / 2],
    [x - width / 2, y - HIGH - 5],
    [x - width / 2, y + 5],
  ];
}

const bands = (label: Label): number[] => {
  const first = Math.floor(label.top / HIGH);
  const last = Math.floor((label.top + HIGH) / HIGH);
  return first === last ? [first] : [first, last];
};

function free(label: Label, taken: Map<number, Label[]>): boolean {
  return bands(label).every((band) => (taken.get(band) ?? []).every((other) => apart(label, other)));
}

export function apart(a: Label, b: Label): boolean {
  return (
    a.left + a.width + GAP <= b.left ||
    b.left + b.width + GAP <= a.left ||
    a.top + HIGH <= b.top ||
    b.top + HIGH <= a.top
  );
}
