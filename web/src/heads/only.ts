// Which heads does a limit of one score leave? It is written as in addresses: entropy>=2.
import type { HeadScores } from "../source/wire";
import { column } from "./data";

export interface Limit {
  name: string;
  sign: ">=" | "<=";
  value: number;
}

export const SIGNS = [">=", "<="] as const;

/** Read a limit; null if the text is none. */
export function limitOf(text: string): Limit | null {
  const parts = /^(.+?)(>=|<=)(-?\d+(?:\.\d+)?)$/.exec(text.replaceAll(/\s/g, ""));
  return parts && { name: parts[1], sign: parts[2] as Limit["sign"], value: Number(parts[3]) };
}

export const limitText = ({ name, sign, value }: Limit): string => `${name}${sign}${value}`;

/** Keep the heads within a limit; heads without this number are left out, an unknown score leaves all. */
export function within(scores: HeadScores, heads: readonly number[], only: string): number[] {
  const limit = limitOf(only);
  const by = limit && column(scores, limit.name);
  if (!limit || !by) return [...heads];
  return heads.filter((head) => (limit.sign === ">=" ? by.of(head) >= limit.value : by.of(head) <= limit.value));
}
