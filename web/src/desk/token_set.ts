// Which tokens are picked together? A set of one side, made by clicks and keys.
import type { TokenPick, TokenSet } from "../source/wire";
import type { Unit } from "../weights/units";
import { ordered } from "./tokens";

/** The picks that say which tokens are picked. */
export interface Picked {
  token: TokenPick | null;
  pinned: boolean;
  chosen: TokenSet | null;
  key: number | null;
}

export const NOTHING: Picked = { token: null, pinned: false, chosen: null, key: null };

/** Get the picks of some tokens of one side; `last` is the one that keys go on from. */
export function pickedSet(side: TokenSet["side"], positions: readonly number[], last?: number): Picked {
  const all = ordered(positions);
  if (all.length === 0) return { ...NOTHING };
  const position = last !== undefined && all.includes(last) ? last : all[all.length - 1];
  return {
    token: { side, position },
    pinned: true,
    chosen: all.length > 1 ? { side, positions: all } : null,
    key: null,
  };
}

/** Get the tokens that are kept: the set, or the pinned token. */
export function keptOf({ token, pinned, chosen }: Omit<Picked, "key">): TokenSet | null {
  return chosen ?? (pinned && token ? { side: token.side, positions: [token.position] } : null);
}

/** Add tokens to the set, or take them out if all are in it; tokens of the other side start a new one. */
export function toggled(now: Picked, side: TokenSet["side"], positions: readonly number[]): Picked {
  const kept = keptOf(now);
  if (kept?.side !== side) return pickedSet(side, positions, positions[0]);
  const all = positions.every((position) => kept.positions.includes(position));
  const rest = kept.positions.filter((position) => !positions.includes(position));
  return pickedSet(side, all ? rest : [...rest, ...positions], all ? undefined : positions[0]);
}

/** Get the set of all tokens between the last picked one and this one. */
export function spanned(now: Picked, side: TokenSet["side"], positions: readonly number[]): Picked {
  if (now.token?.side !== side || !now.pinned) return pickedSet(side, positions, positions[0]);
  const from = anchorOf(now, positions[0]);
  const [low, high] = [Math.min(from, ...positions), Math.max(from, ...positions)];
  const span = Array.from({ length: high - low + 1 }, (_, at) => low + at);
  return pickedSet(side, span, positions[0]);
}

/** Get the end of the set that stays when the other end moves. */
function anchorOf({ token, chosen }: Picked, to: number): number {
  const positions = chosen?.positions ?? [token?.position ?? to];
  const [first, last] = [positions[0], positions[positions.length - 1]];
  return token?.position === first ? last : first;
}

/** List the places of the units that contain tokens of a set. */
export function placesOf(units: readonly Unit[], set: TokenSet | null): number[] {
  if (!set) return [];
  return units.flatMap((unit, at) => (unit.positions.some((position) => set.positions.includes(position)) ? [at] : []));
}
