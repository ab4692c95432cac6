// Which tokens are hidden together?
import type { TokenInfo } from "../source/tokens";
import type { Desk } from "./desk.svelte";

export type Sort = "first" | "special" | "punctuation";

export function positionsOf(tokens: TokenInfo[], sort: Sort): number[] {
  if (sort === "first") return tokens.length ? [0] : [];
  return tokens.flatMap((token, position) => (token[sort] ? [position] : []));
}

export const setOf = (positions: Iterable<number> = []): ReadonlySet<number> => new Set(positions);

/** Sort positions, each once. */
export const ordered = (positions: Iterable<number>): number[] => [...setOf(positions)].sort((a, b) => a - b);

export function streamsShown(desk: Desk): string[] {
  return [...new Set([desk.layer?.queries ?? "", desk.layer?.keys ?? ""])];
}

/** Add the token under the cursor to the set of picked tokens, or take it out. */
export function chooseAtHover(desk: Desk): void {
  const token = desk.hover ?? desk.picks.token;
  if (token) desk.choose(token.side, desk.unitOf(token)?.positions ?? [token.position]);
}

/** Pin the next or previous token that looks; the first step goes to the first generated token. */
export function stepToken(desk: Desk, by: number): void {
  const units = desk.one.rowUnits;
  if (units.length === 0) return;
  const { token, pinned } = desk.picks;
  const now =
    pinned && token?.side === "query" ? units.findIndex((unit) => unit.positions.includes(token.position)) : -1;
  const first = Math.max(
    0,
    units.findIndex((unit) => unit.generated),
  );
  const to = now < 0 ? first : Math.min(units.length - 1, Math.max(0, now + by));
  if (to !== now) desk.pin({ side: "query", position: units[to].positions[0] });
}

/** Hide or show the token under the cursor, or the picked token if there is none. */
export function hideAtHover(desk: Desk): void {
  const token = desk.hover ?? desk.picks.token;
  if (!token) return;
  const stream = (token.side === "query" ? desk.layer?.queries : desk.layer?.keys) ?? "";
  desk.toggleHidden(stream, desk.unitOf(token)?.positions ?? [token.position]);
}
