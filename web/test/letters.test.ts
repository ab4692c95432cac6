import { expect, test } from "vitest";
import { Figure } from "../src/draw/svg";
import { clipped, columns, isolated, letters } from "../src/draw/letters";
import type { TokenInfo } from "../src/source/tokens";
import { unitsOf } from "../src/weights/units";

const CODER = "\u{1f469}\u200d\u{1f4bb}"; // a woman, a joiner, a computer: one picture
const HEBREW = "שלום";

test("a letter is what a reader takes for one: with its marks, emoji joined", () => {
  expect(letters("e\u0301te\u0301")).toEqual(["e\u0301", "t", "e\u0301"]);
  expect(letters(`${CODER}!`)).toEqual([CODER, "!"]);
  expect(letters("Straße")).toHaveLength(6);
});

test("Chinese letters and emoji take two columns, marks none", () => {
  expect([columns("Straße"), columns("你好"), columns(CODER), columns("e\u0301")]).toEqual([6, 4, 2, 1]);
});

test("a text is cut between letters and within its columns", () => {
  expect(clipped("understanding", 6)).toBe("under…");
  expect(clipped("你好世界", 5)).toBe("你好…");
  expect(clipped(`${CODER}${CODER}${CODER}`, 5)).toBe(`${CODER}${CODER}…`);
  expect(clipped("short", 6)).toBe("short");
});

test("only a text that runs leftwards is set apart, also in a figure", () => {
  expect(isolated("plain · 你好")).toBe("plain · 你好");
  expect(isolated(`·${HEBREW}`)).toBe(`\u2068·${HEBREW}\u2069`);
  const figure = new Figure(10, 10, "#fff", "#000");
  figure.text(0, 0, HEBREW);
  expect(figure.toString()).toContain(`>\u2068${HEBREW}\u2069</text>`);
});

test("a word brings the pieces of a letter together again", () => {
  const token = (text: string, word: number) => ({ text, word, special: false }) as TokenInfo;
  // 你 is E4 BD A0 in UTF-8; 好 is E5 A5 BD, and its last byte is in the next word.
  const tokens = [token("⟨E4BD⟩", 0), token("⟨A0⟩", 0), token("⟨E5A5⟩", 0), token("⟨BD⟩", 1)];
  expect(unitsOf(tokens, true).map((unit) => unit.text)).toEqual(["你⟨E5A5⟩", "⟨BD⟩"]);
  expect(unitsOf(tokens, false).map((unit) => unit.text)).toEqual(["⟨E4BD⟩", "⟨A0⟩", "⟨E5A5⟩", "⟨BD⟩"]);
});
