import { expect, test } from "vitest";
import { askEarly, guessedPaths, pathsOf } from "../src/source/early";
import { fromHash } from "../src/desk/picks";
import { httpSource } from "../src/source/http";
import { about } from "./fixtures";

/** A packet without arrays: the length of its header, and the header. */
function packed(value: object): ArrayBuffer {
  const header = new TextEncoder().encode(JSON.stringify(value));
  const bytes = new Uint8Array(4 + header.length);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  return bytes.buffer;
}

const TOLD = { tower: "decoder", inputs: "2", moved: "yes" };
const WEIGHTS = ["edges/0/decoder", "input/0"];

test("a link to the Text tab tells its packets before `about` is there", () => {
  expect(guessedPaths(fromHash("#tab=text&view=model"), TOLD)).toEqual(WEIGHTS);
  const shares = fromHash("#tab=text&shown=contribution&input=1&tower=decoder");
  const first = "as/contribution/-/edges/1/decoder";
  expect(guessedPaths(shares, TOLD)).toEqual([`${first}/0`, "input/1"]);
  expect(guessedPaths({ ...shares, heads: ["L3H1"] }, TOLD)[0]).toBe(`${first}/3`);
  expect(guessedPaths({ ...shares, heads: ["L3H1"], layer: 2 }, TOLD)[0]).toBe(`${first}/2`);
  expect(guessedPaths({ ...shares, view: "model" }, TOLD)[0]).toBe(first);
  expect(guessedPaths({ ...shares, input: 0 }, { ...TOLD, moved: undefined })).toEqual(WEIGHTS);
  // Which sinks are taken out is asked for first; of weights the page takes them out itself.
  expect(guessedPaths({ ...shares, withoutSinks: true }, TOLD)).toEqual(["input/1", "sinks/1/decoder"]);
  const without = { ...shares, input: 0, shown: "weights" as const, withoutSinks: true };
  expect(guessedPaths(without, TOLD)).toEqual([...WEIGHTS, "sinks/0/decoder"]);
});

test("nothing is asked for that may not be there: another tab, tower or input", () => {
  for (const link of ["", "tab=map", "tab=text&heads=cross.L1H2", "tab=text&tower=cross", "tab=text&input=2"])
    expect(guessedPaths(fromHash(`#${link}`), TOLD)).toEqual([]);
  expect(guessedPaths(fromHash("#tab=text"), {})).toEqual([]);
});

test("with what the atlas says, the packets are those that the page asks for", () => {
  const two = about(["encoder", "decoder"]);
  expect(pathsOf(two, fromHash("#tab=text&heads=decoder.L1H0"))).toEqual(WEIGHTS);
  expect(pathsOf(two, fromHash("#tab=text&tower=nothing&input=99"))[0]).toBe("edges/0/encoder");
  const shares = fromHash("#tab=text&shown=contribution");
  expect(pathsOf(two, { ...shares, heads: ["decoder.L2H0"] })[0]).toBe("as/contribution/-/edges/0/decoder/2");
  expect(pathsOf({ ...about(), no_moved: "no values" }, shares)).toEqual(WEIGHTS);
  expect(pathsOf(about(), { ...shares, hidden: { text: [1] } })).toEqual(["input/0"]);
  expect(pathsOf({ ...about(), pictures: true }, {})).toEqual([]);
  const [first, ...rest] = about().inputs;
  expect(pathsOf({ ...about(), inputs: [{ ...first, tokens: 5000 }, ...rest] }, shares)).toEqual([]);
});

test("each packet is asked for once, and a page takes what was asked for early", async () => {
  const sent: string[] = [];
  const get = (path: string) => {
    sent.push(path);
    return Promise.resolve(path === "about" ? packed(about()) : new ArrayBuffer(8));
  };
  const answers = askEarly(get, "#tab=text", TOLD);
  const source = httpSource("http://127.0.0.1/", { page: "p1", answers });
  await source.get("about");
  await source.get("edges/0/decoder");
  expect(sent).toEqual(["about", ...WEIGHTS]);
  expect([...answers.keys()]).toEqual(["input/0"]);
});

test("where only `about` tells what is shown, it is asked for before the page goes on", async () => {
  const sent: string[] = [];
  const get = (path: string) => {
    sent.push(path);
    return Promise.resolve(path === "about" ? packed(about(["encoder"])) : new ArrayBuffer(8));
  };
  const answers = askEarly(get, "", {});
  await httpSource("http://127.0.0.1/", { page: "p1", answers }).get("about");
  expect(sent).toEqual(["about", "edges/0/encoder", "input/0"]);
});
