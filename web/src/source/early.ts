// Which packets does a page ask for first? They are asked for before its script has run, so that server and browser work
// at the same time. Whatever was not foreseen, the page asks for itself.
import { asPath, fitting, fromHash, headPlace, isLong } from "../desk/picks";
import { decode } from "./packet";
import { START, type About, type Picks } from "./wire";

/** Requests that were sent early, by path; a page takes each once. */
export interface Early {
  /** The name under which they were sent, which the page goes on with. */
  page: string;
  answers: Map<string, Promise<ArrayBuffer>>;
}

/** What the page's HTML says of the atlas (`page_html.py`); an exported or older one may say nothing. */
export interface Told {
  /** The first tower. */
  tower?: string;
  /** How many inputs there are, none of them long. */
  inputs?: string;
  /** Whether contributions can be shown. */
  moved?: string;
}

declare global {
  interface Window {
    /** Null: the page's script has begun and needs no early requests any more. */
    atlasEarly?: Early | null;
  }
}

/** Ask for `about` and for what the link shows; where that needs `about`, as soon as it is there. */
export function askEarly(get: (path: string) => Promise<ArrayBuffer>, hash: string, told: Told): Early["answers"] {
  const answers: Early["answers"] = new Map();
  const asked = new Set<string>();
  const ask = (path: string) => {
    const answer = get(path);
    answer.catch(() => {}); // who takes it hears of the error
    asked.add(path);
    answers.set(path, answer);
    return answer;
  };
  const linked = fromHash(hash);
  // The page waits for the same answer and was not there before: this is done before it goes on.
  ask("about")
    .then(decode<About>)
    .then((about) => pathsOf(about, linked).forEach((path) => asked.has(path) || void ask(path)))
    .catch(() => {});
  guessedPaths(linked, told).forEach(ask);
  return answers;
}

/** List what a link to the Text tab shows; nothing where that cannot be known before `about`. */
export function guessedPaths(linked: Partial<Picks>, told: Told): string[] {
  const picks = { ...START, ...linked };
  const elsewhere = picks.heads.some((name) => name.includes(".")) || ![told.tower, ""].includes(picks.tower);
  if (linked.tab !== "text" || !told.tower || elsewhere) return [];
  if (!(Number.isInteger(picks.input) && picks.input >= 0 && picks.input < Number(told.inputs))) return [];
  const named = /^L(\d+)H/.exec(picks.heads[0] ?? "");
  const layer = linked.layer ?? (named ? Number(named[1]) : 0);
  return paths(told.moved ? picks : { ...picks, shown: "weights" }, told.tower, layer);
}

/** List what the Text tab asks for when it opens on a link; nothing where another tab opens. */
export function pathsOf(about: About, linked: Partial<Picks>): string[] {
  const opening = about.pictures || about.maps.length > 0 ? "" : "text";
  if ((linked.tab ?? opening) !== "text" || about.inputs.length === 0) return [];
  const picks = fitting(linked, about, { name: "text" });
  const place = headPlace(about, picks.heads[0] ?? "");
  if (place === null || isLong(about, picks.input)) return [];
  return paths(about.no_moved ? { ...picks, shown: "weights" } : picks, place.tower, place.layer);
}

type Shown = Pick<Picks, "input" | "shown" | "hidden" | "view" | "withoutSinks">;

function paths({ input, shown, hidden, view, withoutSinks }: Shown, tower: string, layer: number): string[] {
  const edges = `edges/${input}/${tower}`;
  // The names of sinks wait for the first picture, unless it is one without them.
  const others = [`input/${input}`, ...(withoutSinks ? [`sinks/${input}/${tower}`] : [])];
  if (shown === "weights") return [edges, ...others];
  // Which keys are taken out depends on the layer, or on the sinks; the page knows.
  if (Object.keys(hidden).length > 0 || withoutSinks) return others;
  // Of what is moved, the page shows the layer in view before it asks for the others.
  return [`${asPath(shown, [])}/${edges}${view === "model" ? "" : `/${layer}`}`, ...others];
}
