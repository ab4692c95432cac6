// What a search means: words, near words, phrases, patterns, limits of columns.
import { describe, expect, test } from "vitest";
import type { Searched } from "../src/map/fields";
import { tryPattern, unsafe } from "../src/map/pattern";
import { find, replaced } from "../src/map/query";
import { edits, nearWords } from "../src/map/words";

/** Queries and keys of sentences, each a list of tokens. */
function points(...inputs: string[][]): Searched {
  const words = inputs.flatMap((tokens, input) => tokens.map((text, position) => ({ text, input, position })));
  const all = [...words, ...words];
  const texts = [...new Set(words.map(({ text }) => text))].sort();
  const kinds = ["letters", "punctuation", "special"];
  const kind = (text: string) => (text === "[CLS]" ? 2 : /\p{L}/u.test(text) ? 0 : 1);
  return {
    points: all.length,
    queries: words.length,
    texts,
    text: Uint32Array.from(all, ({ text }) => texts.indexOf(text)),
    input: Uint32Array.from(all, ({ input }) => input),
    position: Uint32Array.from(all, ({ position }) => position),
    special: Uint8Array.from(all, ({ text }) => Number(text === "[CLS]")),
    colours: [
      {
        name: "punctuation",
        label: "kind of token",
        kind: "name",
        names: kinds,
        values: { data: Uint8Array.from(all, ({ text }) => kind(text)), shape: [all.length] },
      },
      {
        name: "year",
        label: "year",
        kind: "number",
        scale: "linear",
        whole: true,
        low: 1990,
        high: 1991,
        values: { data: Uint16Array.from(all, ({ input }) => [0, 65534, 65535][input]), shape: [all.length] },
      },
    ],
  };
}
const data = points(["[CLS]", "The", "·horse", "·sat", "."], ["·the", "·Horse", "·s", "at", "!"], ["·cafés"]);
const found = (search: string, kind: "exact" | "prefix" | "regex" = "exact", of = data) => {
  const { hits } = find(of, search, kind);
  return (
    hits && Array.from({ length: of.queries }, (_, at) => at).flatMap((at) => (hits[at] ? of.texts[of.text[at]] : []))
  );
};

describe("words", () => {
  test("a whole token is found without its space mark and in either case", () => {
    expect(found("the")).toEqual(["The", "·the"]);
    expect(found("hor", "prefix")).toEqual(["·horse", "·Horse"]);
    expect(found("[cls]")).toEqual(["[CLS]"]);
  });

  test("any tokenizer's mark of a space is understood, and then it counts", () => {
    for (const mark of ["·", "Ġ", "▁"]) expect(found(`${mark}the`)).toEqual(["·the"]);
  });

  test("several words are alternatives, queries and keys alike", () => {
    expect(found("horse !")).toEqual(["·horse", "·Horse", "!"]);
    expect(find(data, "horse", "exact").hits?.reduce((sum, hit) => sum + hit, 0)).toBe(4);
  });

  test("nothing asked is nothing searched", () => {
    expect(find(data, "", "exact")).toEqual({ hits: null, trouble: "", missing: [] });
    expect(found("   ")).toBeNull();
  });

  test("a token with a space or a sign in it is meant as it stands", () => {
    const odd = points(["a b", "position<5", "a"]);
    expect(found("a b", "exact", odd)).toEqual(["a b"]);
    expect(found("position<5", "exact", odd)).toEqual(["position<5"]);
  });
});

describe("a word that does not occur", () => {
  const near = (word: string) => find(data, word, "exact").missing[0]?.near.map(({ text }) => text);

  test("names the words that do: swapped letters, start, accents, other marks", () => {
    expect(near("hosre")).toEqual(["horse"]);
    expect(near("hors")).toEqual(["horse"]);
    expect(near("cafes")).toEqual(["cafés"]);
    expect(near("##horse")?.[0]).toBe("horse");
    expect(near("zebra")).toEqual([]);
  });

  test("counts tokens over all spellings, and the nearest come first", () => {
    expect(nearWords(["·horse", "Horse", "·house", "·hoarse"], [3, 2, 9, 1], "horze")).toEqual([
      { text: "horse", count: 5 },
      { text: "house", count: 9 },
      { text: "hoarse", count: 1 },
    ]);
  });

  test("can be replaced in its place, whatever stands around it", () => {
    const search = "the hosre position<5";
    const [{ term }] = find(data, search, "exact").missing;
    expect(replaced(search, term, "horse")).toBe("the horse position<5");
    expect(replaced("x", { ...term, from: 0, to: 1 }, "a b")).toBe('"a b"');
  });

  test("edits count a swap as one and agree with the definition on every short word", () => {
    expect(edits("hosre", "horse", 2)).toBe(1);
    expect(edits("kitten", "sitting", 3)).toBe(3);
    expect(edits("kitten", "sitting", 2)).toBe(Infinity);
    const words = ["", "a", "b", "ab", "ba", "aab", "bba"];
    for (const a of words)
      for (const b of words) {
        expect(edits(a, b, 9)).toBe(edits(b, a, 9));
        for (const c of words) expect(edits(a, c, 9)).toBeLessThanOrEqual(edits(a, b, 9) + edits(b, c, 9) + 1);
      }
  });
});

describe("phrases", () => {
  test("tokens in sequence are found, also a word of several tokens, but not across a gap", () => {
    expect(found('"the horse"')).toEqual(["The", "·horse", "·the", "·Horse"]);
    expect(found('"horse sat"')).toEqual(["·horse", "·sat", "·Horse", "·s", "at"]);
    expect(found('"the sat"')).toEqual([]);
    expect(found('"sat the"')).toEqual([]); // two inputs
    expect(found('"sat."')).toEqual(["·sat", "."]);
  });

  test("word pieces are joined as their marks say", () => {
    const pieces = points(["[CLS]", "play", "##ing", "cards"]);
    expect(found('"playing cards"', "exact", pieces)).toEqual(["play", "##ing", "cards"]);
    expect(found('"play ing"', "exact", pieces)).toEqual([]);
  });
});

describe("patterns", () => {
  test("slashes make a pattern in any mode, and the mode does without them", () => {
    expect(found("/^.he$/")).toEqual(["The", "·the"]);
    expect(found("^.he$", "regex")).toEqual(["The", "·the"]);
    expect(found("/^s/ horse")).toEqual(["·horse", "·sat", "·Horse", "·s"]);
  });

  test("a broken pattern is named with its fault", () => {
    const broken = find(data, "(the", "regex");
    expect(broken.hits).toBeNull();
    expect(broken.trouble).toContain("“(the” is not a regular expression");
    expect(broken.trouble).toMatch(/group/i);
  });

  test("patterns that could take forever are refused, the usual ones are not", () => {
    for (const bad of ["(a+)+$", "(a|aa)+$", "(a*)*", "((ab)+c)*", "(a?){30}", "(.*a){9}", ".*.*.*.*.*x"])
      expect(unsafe(bad), bad).not.toBe("");
    for (const good of [
      "^(cat|dog)$",
      "colou?r",
      "[+*]+",
      "\\(a+\\)+",
      "a{2,3}b*?",
      "(ing)?$",
      "(ab)+",
      "^.*ed$",
      "(?:x)+",
      "(?<=a)b+",
    ])
      expect(unsafe(good), good).toBe("");
    const start = performance.now();
    expect(find(points(["a".repeat(60) + "!"]), "/(a+)+$/", "exact").trouble).toContain("forever");
    expect(performance.now() - start).toBeLessThan(1000);
  });

  test("a pattern that is slow all the same gives up", () => {
    let clock = 0;
    const tried = tryPattern(["a", "b"], "a", () => (clock += 1000));
    expect(tried.texts).toBeNull();
    expect(tried.trouble).toContain("too long");
  });
});

describe("limits of columns", () => {
  test("place, side, special tokens and columns narrow what the words find, and hold together", () => {
    expect(found("position<2")).toEqual(["[CLS]", "The", "·the", "·Horse", "·cafés"]);
    expect(found("the horse input:1")).toEqual(["·the", "·Horse"]);
    expect(found("special:yes")).toEqual(["[CLS]"]);
    expect(found("kind:punct")).toEqual([".", "!"]);
    expect(found("kind!=letters position>0")).toEqual([".", "!"]);
    expect(found("year=1991 position>=3")).toEqual(["at", "!"]);
    expect(found("year>0")?.length).toBe(10); // the third input has no year
    const { hits } = find(data, "side:key the", "exact");
    expect(hits?.subarray(0, data.queries).some(Boolean)).toBe(false);
    expect(hits?.reduce((sum, hit) => sum + hit, 0)).toBe(2);
  });

  test("a wrong value or column says what there is", () => {
    expect(find(data, "kind:verb", "exact").trouble).toContain("it has letters, punctuation, special");
    expect(find(data, "position:first", "exact").trouble).toContain("is a number; write for example position<5");
    expect(find(data, "kind<letters", "exact").trouble).toContain("write punctuation:letters");
    expect(find(data, "colour:red", "exact").trouble).toContain(
      "There is no column “colour”; there is position, input",
    );
  });
});
