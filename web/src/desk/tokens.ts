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

/** Hide or show the token under the cursor, or the picked token if there is none. */
export function hideAtHover(desk: Desk): void {
  const token = desk.hover ?? desk.picks.token;
  if (!token) return;
  const stream = (token.side === "query" ? desk.layer?.queries : desk.layer?.keys) ?? "";
  desk.toggleHidden(stream, desk.unitOf(token)?.positions ?? [token.position]);
}
