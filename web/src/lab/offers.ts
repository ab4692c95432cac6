// Which edits fit the thing under the cursor? They are the lines of the menu.
import type { Edit } from "./edits";
import { headsNamed, sentence, type Names } from "./sentences";

export interface Neuron {
  side: "query" | "key" | "value";
  index: number;
  position: number;
}

/** What a person points at, as far as it is known. */
export interface Thing {
  /** Names of heads, or of a whole layer. */
  heads: string[];
  /** Names of all heads that look at the same tokens. */
  every: string[];
  /** The number of the input that positions belong to. */
  input: number;
  token?: { side: "query" | "key"; positions: number[] };
  /** The line from a query to a key. */
  line?: { query: number[]; key: number[] };
  neuron?: Neuron;
}

export interface Offer {
  title: string;
  edit: Edit;
}

const capital = (words: string): string => words[0].toUpperCase() + words.slice(1);

/** List the edits that fit a thing: those of the smallest part first, those of the head last. */
export function offersFor(thing: Thing, names: Names): Offer[] {
  const { heads, every, input } = thing;
  const same = JSON.stringify(heads) === JSON.stringify(every);
  const said = (edit: Edit): Offer => ({ title: sentence(edit, names), edit });
  const everywhere = (make: (heads: string[]) => Edit): Offer[] =>
    (same ? [heads] : [heads, every]).map((which) => said(make(which)));
  const out: Offer[] = [];
  if (thing.neuron) out.push(...ofNeuron(thing, thing.neuron, said));
  if (thing.line) {
    const { query, key } = thing.line;
    const edges = query.flatMap((from) => key.map((to) => [from, to]));
    out.push(...everywhere((which) => ({ edit: "mask", heads: which, inputs: [input], edges })));
  }
  const seen = thing.line?.key ?? (thing.token?.side === "key" ? thing.token.positions : null);
  if (seen) out.push(...everywhere((which) => ({ edit: "mask", heads: which, inputs: [input], tokens: seen })));
  const looking = thing.line?.query ?? (thing.token?.side === "query" ? thing.token.positions : null);
  if (looking) out.push(...atQuery(heads, input, looking).map(said));
  return [...out, ...ofHeads(heads)];
}

function ofNeuron({ heads, input }: Thing, { side, index, position }: Neuron, said: (edit: Edit) => Offer): Offer[] {
  const neuron = { edit: "neuron", heads, side, index: [index] };
  const here = { inputs: [input], positions: [position] };
  return [
    { ...neuron, ...here, value: 0 },
    { ...neuron, value: 0 },
    { ...neuron, ...here, scale: 2 },
  ].map(said);
}

const atQuery = (heads: string[], input: number, positions: number[]): Edit[] => [
  { edit: "ablate", heads, by: "zero", inputs: [input], positions },
  { edit: "pattern", heads, pattern: "even", inputs: [input], positions },
];

function ofHeads(heads: string[]): Offer[] {
  const named = headsNamed(heads);
  const titled = (title: string, edit: Edit): Offer => ({ title: capital(title), edit });
  return [
    titled(`take ${named} out`, { edit: "ablate", heads, by: "zero" }),
    titled(`halve ${named}`, { edit: "scale", heads, by: 0.5 }),
    titled(`double ${named}`, { edit: "scale", heads, by: 2 }),
    titled(`even attention in ${named}`, { edit: "pattern", heads, pattern: "even" }),
    titled(`only the previous token in ${named}`, { edit: "pattern", heads, pattern: "previous" }),
  ];
}
