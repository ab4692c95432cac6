// What does a search ask for, and which points are it?
//
//   the cat          any of these words           "the cat"      these words in sequence
//   /^un.*ed$/       a regular expression         position<5     a limit of a column; several limits hold together
//
// Words, phrases and patterns are alternatives; limits narrow them, or all points if there are no words.
import type { Picks } from "../source/wire";
import { fieldNamed, fieldsOf, holds, limitOf, type Field, type Limit, type Searched } from "./fields";
import { tryPattern } from "./pattern";
import { phraseHits } from "./phrases";
import { bare, fitting, nearWords, type Near } from "./words";

export interface Term {
  kind: "word" | "phrase" | "pattern";
  text: string;
  /** Where it stands in the search. */
  from: number;
  to: number;
}

export interface Parsed {
  terms: Term[];
  limits: Limit[];
  trouble: string;
}

/** A word that does not occur, and what does. */
export interface Missing {
  term: Term;
  near: Near[];
}

export interface Matched {
  /** For each point, whether it matches (1) or not (0); null without a search, or if it cannot be read. */
  hits: Uint8Array | null;
  trouble: string;
  missing: Missing[];
}

const CHUNK =
  /"(?<phrase>[^"]*)"?|\/(?<pattern>(?:\\.|[^/\\])+)\/(?=\s|$)|(?<name>[\p{L}_][\p{L}\p{N}_-]*)(?<sign><=|>=|!=|[<>=:])(?:"(?<quoted>[^"]*)"?|(?<value>[^\s"]+))|\S+/gu;

/** Read a search. */
export function parse(search: string, kind: Picks["searchKind"], fields: readonly Field[]): Parsed {
  const whole = { from: 0, to: search.length, text: search };
  if (kind === "regex") return { terms: [{ kind: "pattern", ...whole }], limits: [], trouble: "" };
  const out: Parsed = { terms: [], limits: [], trouble: "" };
  for (const chunk of search.matchAll(CHUNK)) {
    const place = { from: chunk.index, to: chunk.index + chunk[0].length };
    const { phrase, pattern, name, sign, quoted, value } = chunk.groups as Record<string, string | undefined>;
    const field = name === undefined ? undefined : fieldNamed(fields, name);
    if (field && sign) {
      const limit = limitOf(field, sign, quoted ?? value ?? "");
      if (typeof limit === "string") out.trouble ||= limit;
      else out.limits.push(limit);
    } else if (phrase !== undefined && chunk[0] !== '"') out.terms.push({ kind: "phrase", text: phrase, ...place });
    else if (pattern !== undefined) out.terms.push({ kind: "pattern", text: pattern, ...place });
    else out.terms.push({ kind: "word", text: chunk[0], ...place });
  }
  return out;
}

/** Find the points of a search. */
export function find(data: Searched, search: string, kind: Picks["searchKind"]): Matched {
  const none: Matched = { hits: null, trouble: "", missing: [] };
  const lower = search.toLowerCase();
  if (search === "") return none;
  // A token may contain spaces or look like a limit; then it is meant as it stands.
  const literal = kind === "exact" && data.texts.some((text) => text.toLowerCase() === lower);
  const fields = fieldsOf(data);
  const { terms, limits, trouble } = literal
    ? { terms: [{ kind: "word" as const, text: search, from: 0, to: search.length }], limits: [], trouble: "" }
    : parse(search, kind, fields);
  if (trouble) return { ...none, trouble };
  if (terms.length + limits.length === 0) return none;
  const hits = new Uint8Array(data.points).fill(Number(terms.length === 0));
  const missing: Missing[] = [];
  for (const term of terms) {
    const own = termHits(data, term, kind === "prefix" ? "prefix" : "exact");
    if (typeof own === "string") return { ...none, trouble: own };
    let count = 0;
    for (let at = 0; at < own.length; at++) {
      count += own[at];
      hits[at] |= own[at];
    }
    if (count === 0 && term.kind !== "pattern") missing.push({ term, near: nearTerm(data, term) });
  }
  for (const limit of limits) for (let at = 0; at < hits.length; at++) if (hits[at] && !holds(limit, at)) hits[at] = 0;
  return { hits, trouble: unknownField(missing, fields), missing };
}

/** Find the texts that a search of words and patterns matches; null if it asks for more than texts. */
export function matchingTexts(texts: string[], search: string, kind: Picks["searchKind"]): Uint8Array | null {
  const each = Uint32Array.from(texts.keys());
  const none = new Uint32Array(texts.length);
  const data = {
    points: texts.length,
    queries: texts.length,
    texts,
    text: each,
    input: each,
    position: none,
    special: new Uint8Array(texts.length),
    colours: [],
  };
  const asked = parse(search, kind, []);
  if (asked.terms.some((term) => term.kind === "phrase") || /[<>=:]\S/u.test(search)) return null;
  return find(data, search, kind).hits;
}

/** Find the points of one term; a text says why it cannot be used. */
function termHits(data: Searched, { kind, text }: Term, how: "exact" | "prefix"): Uint8Array | string {
  if (kind === "phrase") return phraseHits(data, text);
  let texts: Uint8Array;
  if (kind === "pattern") {
    const tried = tryPattern(data.texts.map(bare), text);
    if (!tried.texts) return tried.trouble;
    texts = tried.texts;
  } else {
    const fits = fitting(text, how);
    texts = Uint8Array.from(data.texts, (own) => Number(fits(own)));
  }
  return Uint8Array.from(data.text, (own) => texts[own]);
}

function nearTerm(data: Searched, { kind, text }: Term): Near[] {
  if (kind !== "word") return [];
  const counts = new Uint32Array(data.texts.length);
  for (let at = 0; at < data.queries; at++) counts[data.text[at]]++;
  return nearWords(data.texts, counts, text);
}

/** Say which columns there are, where a word that does not occur looks like a limit of one. */
function unknownField(missing: readonly Missing[], fields: readonly Field[]): string {
  for (const { term } of missing) {
    const name = /^([\p{L}_][\p{L}\p{N}_-]*)(?:<=|>=|!=|[<>=:])\S/u.exec(term.text)?.[1];
    if (name) return `There is no column “${name}”; there is ${fields.map((field) => field.name).join(", ")}.`;
  }
  return "";
}

/** Write a search with another word in the place of a term. */
export function replaced(search: string, { from, to }: Term, word: string): string {
  const safe = /[\s"/]|[<>=:]./u.test(word) ? `"${word.replaceAll('"', "")}"` : word;
  return search.slice(0, from) + safe + search.slice(to);
}
