// How does the form make an edit? Every kind of edit is one row: its fields, and what they become.
import type { Edit } from "./edits";
import type { Pair } from "../weights/compare";

/** What the form holds; each kind uses some of it. */
export interface Draft {
  kind: DraftKind;
  heads: string;
  /** The only token where it applies; null everywhere. */
  position: number | null;
  by: "zero" | "mean" | "resample";
  times: number;
  token: number;
  query: number;
  pattern: "even" | "previous" | "self" | "window";
  sink: number;
  recent: number;
  side: "query" | "key" | "value";
  neuron: number;
  how: "set" | "multiply";
  value: number;
  what: "output" | "pattern" | "query" | "key" | "value";
  /** The number of the other input, or a text; and which of its tokens correspond: null if all do, one by one. */
  from: number | string | null;
  align: readonly Pair[] | null;
}

export type DraftKind = "ablate" | "scale" | "token" | "line" | "pattern" | "neuron" | "patch";
export type Field = Exclude<keyof Draft, "kind" | "align">;

export const START_DRAFT: Draft = {
  kind: "ablate",
  heads: "",
  position: null,
  by: "zero",
  times: 0.5,
  token: 0,
  query: 0,
  pattern: "even",
  sink: 1,
  recent: 4,
  side: "key",
  neuron: 0,
  how: "set",
  value: 0,
  what: "output",
  from: null,
  align: null,
};

interface Kind {
  title: string;
  fields: Field[];
  /** Whether it names tokens, so that it fits one input only. */
  tokens?: boolean;
  make(draft: Draft): Omit<Edit, "heads">;
}

export const DRAFTS: Record<DraftKind, Kind> = {
  ablate: { title: "take a head out", fields: ["by", "position"], make: ({ by }) => ({ edit: "ablate", by }) },
  scale: { title: "scale a head", fields: ["times", "position"], make: ({ times }) => ({ edit: "scale", by: times }) },
  token: {
    title: "hide a token",
    fields: ["token"],
    tokens: true,
    make: ({ token }) => ({ edit: "mask", tokens: [token] }),
  },
  line: {
    title: "cut a line",
    fields: ["query", "token"],
    tokens: true,
    make: ({ query, token }) => ({ edit: "mask", edges: [[query, token]] }),
  },
  pattern: {
    title: "set where it looks",
    fields: ["pattern", "sink", "recent", "position"],
    make: ({ pattern, sink, recent }) =>
      pattern === "window" ? { edit: "pattern", pattern, sink, recent } : { edit: "pattern", pattern },
  },
  neuron: {
    title: "change a neuron",
    fields: ["side", "neuron", "how", "value", "position"],
    make: ({ side, neuron, how, value }) => ({
      edit: "neuron",
      side,
      index: [neuron],
      ...(how === "set" ? { value } : { scale: value }),
    }),
  },
  patch: {
    title: "patch from another input",
    fields: ["what", "from", "position"],
    tokens: true,
    make: ({ what, from, align }) => ({ edit: "patch", what, from: [from], ...(align ? { align } : {}) }),
  },
};

/** Tell whether a field of the form matters now. */
export function asked(draft: Draft, field: Field): boolean {
  if (!DRAFTS[draft.kind].fields.includes(field)) return false;
  return (field !== "sink" && field !== "recent") || draft.pattern === "window";
}

const HEAD = /^(all|([\w-]+\.)?L\d+(H\d+)?)$/i;

/** Read names of heads as a person writes them: "L4H5, l3", "all". */
export function headsIn(text: string): string[] | null {
  const names = text.split(/[\s,;]+/).filter(Boolean);
  if (names.length === 0 || !names.every((name) => HEAD.test(name))) return null;
  if (names.some((name) => name.toLowerCase() === "all")) return ["all"];
  return names.map((name) =>
    name.replace(/l(\d+)(?:h(\d+))?$/i, (_, layer, head) => `L${layer}${head ? `H${head}` : ""}`),
  );
}

/** Make the edit of a form for an input; or a sentence that says what is missing. */
export function editOf(draft: Draft, input: number): Edit | string {
  const heads = headsIn(draft.heads);
  if (!heads) return "name heads as in L4H5, a layer as in L4, or say all";
  const numbers: Field[] = ["times", "value", "sink", "recent", "neuron"];
  if (numbers.some((field) => asked(draft, field) && !Number.isFinite(draft[field] as number))) return "write a number";
  if (asked(draft, "from") && draft.from === null) return "choose another input to take it from";
  const { tokens, make } = DRAFTS[draft.kind];
  const placed = asked(draft, "position") && draft.position !== null;
  const { edit, ...fields } = make(draft);
  return {
    edit: String(edit),
    heads,
    ...(tokens || placed ? { inputs: [input] } : {}),
    ...(placed ? { positions: [draft.position as number] } : {}),
    ...fields,
  };
}
