// Which tokens are patches of a picture, and which are drawn on one copy of it?

/** A token with a place: its box in fractions of the original picture. */
export interface Patch {
  position: number;
  image: number;
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** One copy of a picture, with patches that do not overlap. */
export interface Cover {
  image: number;
  /** Width over height of the original. */
  aspect: number;
  patches: Patch[];
}

/** List the patch of each token; undefined for a token without a place. */
export function patchesOf(image: ArrayLike<number>, box: ArrayLike<number> | undefined): (Patch | undefined)[] {
  return Array.from(image, (picture, position) => {
    if (!box || picture < 0) return undefined;
    const [left, top, right, bottom] = [0, 1, 2, 3].map((side) => box[4 * position + side]);
    return right > left && bottom > top ? { position, image: picture, left, top, right, bottom } : undefined;
  });
}

/**
 * List the copies of the pictures. Patches of a picture that the model saw whole and in tiles overlap:
 * each size of patches gets its own copy.
 */
export function coversOf(patches: readonly (Patch | undefined)[], aspects: readonly number[]): Cover[] {
  return aspects.flatMap((aspect, image) => {
    const own = patches.filter((patch): patch is Patch => patch?.image === image);
    const sizes = bySize(own);
    const apart = sizes.some((one, at) => sizes.slice(at + 1).some((other) => overlap(one, other)));
    return (apart ? sizes : [own]).map((group) => ({
      image,
      aspect,
      patches: group.sort((a, b) => a.position - b.position),
    }));
  });
}

const areaOf = (patch: Patch): number => (patch.right - patch.left) * (patch.bottom - patch.top);

/** Group patches by size, largest first; one below ¾ of the largest of a group starts the next group. */
function bySize(patches: readonly Patch[]): Patch[][] {
  const out: Patch[][] = [];
  for (const patch of [...patches].sort((a, b) => areaOf(b) - areaOf(a))) {
    const group = out.at(-1);
    if (group && areaOf(patch) > 0.75 * areaOf(group[0])) group.push(patch);
    else out.push([patch]);
  }
  return out;
}

function overlap(large: readonly Patch[], small: readonly Patch[]): boolean {
  return small.some((patch) => {
    const [x, y] = middleOf(patch);
    return large.some((one) => inside(one, x, y));
  });
}

export const middleOf = (patch: Patch): [number, number] => [
  (patch.left + patch.right) / 2,
  (patch.top + patch.bottom) / 2,
];

export const inside = (patch: Patch, x: number, y: number): boolean =>
  x >= patch.left && x < patch.right && y >= patch.top && y < patch.bottom;

/** Get the patch that contains the middle of a patch of another layer. */
export function atPlace(patches: readonly (Patch | undefined)[], other: Patch): Patch | undefined {
  const [x, y] = middleOf(other);
  return patches.find((patch) => patch?.image === other.image && inside(patch, x, y));
}

/** Get the part of the picture that the patches cover together. */
export function seenOf(patches: readonly Patch[]): Omit<Patch, "position" | "image"> {
  const within = (value: number) => Math.min(1, Math.max(0, value));
  const out = { left: 1, top: 1, right: 0, bottom: 0 };
  for (const patch of patches) {
    out.left = Math.min(out.left, within(patch.left));
    out.top = Math.min(out.top, within(patch.top));
    out.right = Math.max(out.right, within(patch.right));
    out.bottom = Math.max(out.bottom, within(patch.bottom));
  }
  return out;
}

/** Get the nearest patch in a direction, for the keyboard; the patch itself if there is none. */
export function neighbour(patches: readonly Patch[], from: Patch, across: number, down: number): Patch {
  const [x, y] = middleOf(from);
  let [best, least] = [from, Infinity];
  for (const patch of patches) {
    const [dx, dy] = [
      (middleOf(patch)[0] - x) / (from.right - from.left),
      (middleOf(patch)[1] - y) / (from.bottom - from.top),
    ];
    const along = dx * across + dy * down;
    const aside = Math.abs(dx * down) + Math.abs(dy * across);
    if (along > 0.5 && along + 3 * aside < least) [best, least] = [patch, along + 3 * aside];
  }
  return best;
}
