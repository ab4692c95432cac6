// Does near mean attended on the map of one head? The one place where figures become words.
//
// The question of a reader: I see a query; is the key it attends to most among the three nearest keys? `map.strongest`
// says how often it is. Chance alone brings some of them there: with four visible keys three of four. So a share counts
// by how much of the way from chance to always it goes: (share − chance) / (1 − chance), the gain.
//
//   most   gain ≥ 0.6 and share ≥ 0.8: a reader who believes the map errs in at most one of five queries; and over all
//          visible keys distance falls as the logit rises (`map.visible` ≤ −0.3), so it is not the first key alone.
//   little gain < 0.25, or distance that does not fall with the logit at all (`map.visible` > −0.05): three quarters of
//          what a reader sees would be there on a map of shuffled points too.
//   part   everything between.
//
// Chance is the larger of the counted chance and what the shuffled map reaches. From 0.9 on (inputs of three or four
// tokens) a share tells nothing. Maps of earlier versions have only `map.correlation`; it ranks keys that a causal query
// cannot see, so it gets no grade.

export type Grade = "most" | "part" | "little" | "unknown";

export const MARKS: Record<Grade, string> = { most: "●", part: "◐", little: "○", unknown: "" };
const MOST = { gain: 0.6, share: 0.8, visible: -0.3 };
const LITTLE = { gain: 0.25, visible: -0.05 };
const NO_ROOM = 0.9;
const SINK = 0.5;

export interface Verdict {
  grade: Grade;
  /** The text of a small panel's title: "94", or the correlation of an earlier map. */
  short: string;
  /** The text of the badge. */
  badge: string;
  /** A whole sentence for hint and tooltip. */
  words: string;
  /** A sentence about special tokens, where most queries attend to one; else empty. */
  sink: string;
}

type Figure = (name: string) => number;

const hundred = (share: number): string => String(Math.round(100 * share));

/** Write a correlation or share, short enough for a title. */
export const brief = (value: number): string =>
  Number.isFinite(value)
    ? value
        .toFixed(2)
        .replace("-", "−")
        .replace(/^(−?)0\./, "$1.")
    : "–";

/** Say how far near means attended on a head's map. */
export function verdict(figure: Figure): Verdict {
  const share = figure("map.strongest");
  if (!Number.isFinite(share)) return earlier(figure("map.correlation"));
  const chance = chanceOf(figure);
  const grade = gradeOf(share, chance, figure("map.visible"));
  const [of, by] = [`${hundred(share)} of 100`, Number.isFinite(chance) ? `chance ${hundred(chance)}` : ""];
  const aside = by && ` (${by})`;
  const said: Record<Grade, [string, string]> = {
    most: [`near means attended: ${of}`, `Here near does mean attended: ${of}${aside}.`],
    part: [`in part: ${of}`, `Near means attended in part: ${of}${aside}.`],
    little: [`keeps little: ${of}`, `This head’s map keeps little (${of}${by && `, ${by}`}); look at the lines.`],
    unknown: [
      `cannot tell: ${of}`,
      `The inputs are too short to tell whether near means attended (${of}${by && `, ${by}`}).`,
    ],
  };
  const [badge, words] = said[grade];
  return { grade, short: hundred(share), badge, words, sink: sinkWords(figure("to_special")) };
}

/** Get the larger of the counted chance and the share of the shuffled map; NaN if neither is known. */
export function chanceOf(figure: Figure): number {
  const known = [figure("chance"), figure("shuffled.strongest")].filter(Number.isFinite);
  return known.length > 0 ? Math.max(...known) : NaN;
}

function gradeOf(share: number, chance: number, visible: number): Grade {
  const base = Number.isFinite(chance) ? chance : 0;
  if (base >= NO_ROOM) return "unknown";
  const gain = (share - base) / (1 - base);
  // An unknown correlation (all keys equally far or equally attended) speaks neither for nor against.
  if (gain < LITTLE.gain || visible > LITTLE.visible) return "little";
  const ordered = !Number.isFinite(visible) || visible <= MOST.visible;
  return gain >= MOST.gain && share >= MOST.share && ordered ? "most" : "part";
}

const sinkWords = (share: number): string =>
  share >= SINK
    ? `${hundred(share)} of 100 queries attend most to a special token; the figures are about the other tokens.`
    : "";

function earlier(correlation: number): Verdict {
  const short = brief(correlation);
  return {
    grade: "unknown",
    short,
    badge: `fidelity ${short}`,
    words: Number.isFinite(correlation)
      ? `Rank correlation of distance and q·k: ${short}; −1 is best. This map was not measured for whether near means attended; compute it again.`
      : "It was not measured whether near means attended on this map; look at the lines.",
    sink: "",
  };
}

const RANKS: Record<Grade, number> = { most: 2, part: 1, little: 0, unknown: 0 };

/** Tell whether a head's map keeps at least as much as asked. */
export const keeps = (grade: Grade, asked: "any" | "part" | "most"): boolean =>
  asked === "any" || RANKS[grade] >= RANKS[asked];

export interface FigureRow {
  name: string;
  title: string;
  /** What the figure says, in one plain sentence. */
  means: string;
  cells: { of: string; value: number }[];
}

const OF = ["full", "map", "pca", "shuffled"];
const ROWS = [
  {
    name: "strongest",
    title: "strongest near",
    means:
      "how often the key that a query attends to most (special tokens apart) is among its three nearest keys; 1 is always",
  },
  {
    name: "visible",
    title: "order of keys",
    means:
      "Spearman’s rank correlation of distance and logit over the keys that a query can see; −1 is perfect, 0 is none",
  },
  {
    name: "overlap",
    title: "mixed",
    means: "whether queries and keys share their place: 1 is mixed, 0 is two islands",
  },
  {
    name: "like",
    title: "like to like",
    means: "how far the 15 nearest of a query among queries, and of a key among keys, are true neighbours; 1 means all",
  },
  {
    name: "correlation",
    title: "correlation",
    means:
      "Spearman’s rank correlation of distance and q·k over all keys of the input, also those that a causal query cannot see; −1 is perfect",
  },
  {
    name: "trust",
    title: "trust",
    means: "how far the 15 nearest points on the map are true neighbours, of either kind; 1 means all",
  },
  { name: "kept", title: "kept", means: "share of the 15 true neighbours that are still neighbours on the map" },
];

/** List the figures that this map has, with what they mean. */
export function figureRows(figure: Figure): FigureRow[] {
  return ROWS.flatMap((row) => {
    const cells = OF.map((of) => ({ of, value: figure(`${of}.${row.name}`) }));
    if (cells.every(({ value }) => !Number.isFinite(value))) return [];
    return [{ ...row, cells: [...cells, { of: "chance", value: row.name === "strongest" ? figure("chance") : NaN }] }];
  });
}
