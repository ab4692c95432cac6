// Is a regular expression safe to run? A browser cannot stop one that takes forever.
//
// Time grows without limit where a repetition contains a repetition or a choice, as in (a+)+ or (a|aa)+: such patterns
// are refused. What is left takes at most about nᵏ steps for a text of n letters and k open repetitions: both are
// limited. A pattern is tried once on each distinct text, and gives up between two texts when it has taken too long.

const MOST_OPEN = 4;
const LONGEST = 100;
const PATIENCE = 400;
const NESTED =
  "it repeats a group that itself repeats or chooses, as in (a+)+ or (a|b)+, which can take forever; repeat one thing only";
const MANY = `it has more than ${MOST_OPEN} open repetitions (*, + or {2,}), which can take forever; use fewer`;
const SLOW = "it takes too long on the tokens of this map; make it simpler";

const PARTS = /\\.|\[(?:\\.|[^\]\\])*\]|\(\?(?:<?[=!]|:|<\w+>)|\{\d+(?:,\d*)?\}|./gsu;
const QUANTIFIER = /^(?:[*+?]|\{\d+(?:,\d*)?\})$/;
const OPEN = /^(?:[*+]|\{\d+,\})$/;

/** Say what makes a pattern unsafe; empty if nothing does. */
export function unsafe(pattern: string): string {
  /** For each open group, whether something in it repeats or is a choice. */
  const within = [false];
  let [open, atom, before] = [0, false, ""];
  for (const [part] of pattern.matchAll(PARTS)) {
    const top = within.length - 1;
    if (part.startsWith("(")) within.push(false);
    else if (part === ")" && top > 0) {
      atom = within.pop() as boolean;
      within[top - 1] ||= atom;
    } else if (part === "|") within[top] = true;
    else if (!QUANTIFIER.test(part)) atom = false;
    else if (!(part === "?" && QUANTIFIER.test(before))) {
      if (part !== "?" && atom) return NESTED;
      within[top] = true;
      if (OPEN.test(part)) open++;
    }
    before = part;
  }
  return open > MOST_OPEN ? MANY : "";
}

export interface Tried {
  /** Whether each text matches, as 1 or 0; null if the pattern cannot be used. */
  texts: Uint8Array | null;
  trouble: string;
}

/** Try a pattern on every text; upper and lower case are the same. */
export function tryPattern(
  texts: readonly string[],
  pattern: string,
  now: () => number = () => performance.now(),
): Tried {
  const fail = (why: string) => ({
    texts: null,
    trouble: `“${pattern}” is not a regular expression that can be used: ${why}`,
  });
  let compiled: RegExp;
  try {
    compiled = new RegExp(pattern, "iu");
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).replace(/^.*\/iu?: /, "");
    return {
      texts: null,
      trouble: `“${pattern}” is not a regular expression: ${why[0]?.toLowerCase()}${why.slice(1)}`,
    };
  }
  const danger = unsafe(pattern);
  if (danger) return fail(danger);
  const out = new Uint8Array(texts.length);
  const end = now() + PATIENCE;
  for (let at = 0; at < texts.length; at++) {
    out[at] = Number(compiled.test(texts[at].slice(0, LONGEST)));
    if (at % 256 === 0 && now() > end) return fail(SLOW);
  }
  return { texts: out, trouble: "" };
}
