// The tokens that have no place, in order, with each run of patches as one mark.
import type { TokenInfo } from "../source/wire";

export interface BesideItem {
  position: number;
  /** Nothing for a run of patches. */
  token: TokenInfo | null;
  /** Patches in the run. */
  count: number;
}

/** Patches of padding show nothing of a picture, but belong to it all the same. */
export function besides(tokens: readonly TokenInfo[], isPatch: (position: number) => boolean): BesideItem[] {
  const out: BesideItem[] = [];
  tokens.forEach((token, position) => {
    const last = out.at(-1);
    if (!isPatch(position)) out.push({ position, token, count: 0 });
    else if (last && !last.token) last.count += 1;
    else out.push({ position, token: null, count: 1 });
  });
  return out;
}
