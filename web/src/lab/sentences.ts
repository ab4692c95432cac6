// What does an edit do, in one plain sentence?
import { numbersIn, pairsIn, type Edit } from "./edits";
import { clipped, isolated } from "../draw/letters";

/** How tokens and inputs are called; a token without a known text is called by its number. */
export interface Names {
  token(side: "query" | "key", position: number): string;
  input(number: number): string;
}

export const NO_NAMES: Names = {
  token: (_side, position) => `token ${position}`,
  input: (number) => `input ${number}`,
};

/** Join names: "a", "a and b", "a, b and 3 more". */
export function listed(names: readonly string[], most = 3): string {
  if (names.length <= 1) return names.join("");
  const [shown, more] = names.length > most ? [names.slice(0, most - 1), names.length - most + 1] : [names, 0];
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  return `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

export function headsNamed(heads: readonly string[]): string {
  if (heads.includes("all")) return "every head";
  return listed(heads.map((name) => name.replace(/^(.+\.)?L(\d+)$/, "$1layer $2")));
}

/** Write a number without needless digits. */
export const plainly = (value: unknown): string =>
  typeof value === "number" ? String(Number(value.toFixed(3))).replace("-", "−") : "?";

/** Heads as the subject of a sentence. */
interface Heads {
  named: string;
  several: boolean;
}

const verb = ({ named, several }: Heads, does: string): string => `${named} ${does}${several ? "" : "s"}`;
const its = ({ several }: Heads): string => (several ? "their" : "its");
const it = ({ several }: Heads): string => (several ? "they move" : "it moves");

const INSTEAD: Record<string, (heads: Heads) => string> = {
  mean: (heads) => `; ${its(heads)} mean over other inputs instead`,
  resample: (heads) => `; what ${it(heads)} on another input instead`,
};

const LOOKS: Record<string, string> = {
  even: "evenly at all tokens",
  previous: "at the previous token",
  self: "at the token itself",
};

function pattern(edit: Edit, heads: Heads): string {
  const look = verb(heads, "look");
  if (edit.pattern === "window")
    return `${look} at the first ${plainly(edit.sink ?? 0)} and the last ${plainly(edit.recent ?? 0)} tokens`;
  if (typeof edit.pattern === "string") return `${look} ${LOOKS[edit.pattern] ?? "?"}`;
  return `${look} as a given matrix says`;
}

function mask(edit: Edit, { named }: Heads, names: Names): string {
  const lines = pairsIn(edit.edges).map(
    ([query, key]) => `${names.token("query", query)} → ${names.token("key", key)}`,
  );
  if (lines.length > 0) return `Cut the line${lines.length > 1 ? "s" : ""} ${listed(lines)} in ${named}`;
  const tokens = numbersIn(edit.tokens).map((position) => names.token("key", position));
  return `Hide ${listed(tokens)} from ${named}`;
}

function neuron(edit: Edit, { named }: Heads): string {
  const index = numbersIn(edit.index);
  const which = `neuron${index.length > 1 ? "s" : ""} ${listed(index.map(String))} of the ${String(edit.side)} of ${named}`;
  return typeof edit.scale === "number"
    ? `Multiply ${which} by ${plainly(edit.scale)}`
    : `Set ${which} to ${plainly(edit.value)}`;
}

/** Write a text in quotation marks, cut where it is long. */
export const quoted = (text: string, most = 40): string => `“${isolated(clipped(text, most))}”`;

function patch(edit: Edit, heads: Heads, names: Names): string {
  const [from] = Array.isArray(edit.from) ? (edit.from as unknown[]) : [edit.from];
  const text = Array.isArray(from) ? from.join(" / ") : typeof from === "string" ? from : "another input";
  const source = typeof from === "number" ? names.input(from) : quoted(text);
  if (edit.what === "output") return `${verb(heads, "move")} what ${it(heads)} on ${source}`;
  return `${verb(heads, "take")} ${its(heads)} ${String(edit.what)} from ${source}`;
}

function body(edit: Edit, names: Names): string {
  const heads: Heads = {
    named: headsNamed(edit.heads),
    several: edit.heads.length > 1 && !edit.heads.includes("all"),
  };
  if (edit.edit === "ablate") return `Take ${heads.named} out${INSTEAD[String(edit.by)]?.(heads) ?? ""}`;
  if (edit.edit === "scale") return `Multiply what ${verb(heads, "move")} by ${plainly(edit.by)}`;
  if (edit.edit === "mask") return mask(edit, heads, names);
  if (edit.edit === "pattern") return pattern(edit, heads);
  return edit.edit === "neuron" ? neuron(edit, heads) : patch(edit, heads, names);
}

export function sentence(edit: Edit, names: Names = NO_NAMES): string {
  const words = body(edit, names);
  const side = edit.edit === "neuron" && edit.side !== "query" ? "key" : "query";
  const only = edit.positions?.map((position) => names.token(side, position)) ?? [];
  const place = edit.positions ? `, only at ${only.length > 0 ? listed(only) : "no token"}` : "";
  return words[0].toUpperCase() + words.slice(1) + place;
}
