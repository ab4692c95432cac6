// Which tokens have no place in a picture? They are listed in order; each run of patches is one item.
import type { TokenInfo } from "../source/tokens";

export interface BesideItem {
  position: number;
  /** null for a run of patches. */
  token: TokenInfo | null;
  /** Number of patches in the run. */
  count: number;
}

/** List tokens and runs of patches; padding counts as a patch. */
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
