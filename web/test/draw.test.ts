import { expect, test } from "vitest";
import { batches } from "../src/draw/batch";
import { headColours, heatScale, hex, inkOn, oklch, signed } from "../src/draw/colour";
import { escaped, Figure } from "../src/draw/svg";
import { ink } from "../src/draw/thumb";
import { boxes } from "../src/panels/heat/maps";
import { rowsInView, rowHeight } from "../src/panels/parts/geometry";
import { everything, linesOf } from "../src/weights/lines";
import { head } from "./fixtures";

test("OKLCH gives the known sRGB colours", () => {
  expect(hex(oklch(1, 0, 0))).toBe("#ffffff");
  expect(hex(oklch(0.628, 0.2577, 29.23))).toMatch(/^#f[c-f]/);
});

test("as many heads as there are, so many colours", () => {
  for (const count of [1, 12, 32, 64]) expect(new Set(headColours(count, false).map(hex)).size).toBe(count);
});

test("zero is the paper, positive is blue, negative is orange", () => {
  expect(hex(signed(0, 1, false))).toBe("#fcfcfd");
  expect(hex(signed(1, 1, false))).toBe("#2b7bba");
  expect(hex(signed(-9, 1, false))).toBe("#e1812c");
});

test("the heat scale only ever darkens on light paper and lightens on dark", () => {
  const light = (rgb: readonly number[]) => 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
  const [day, night] = [heatScale(false).map(light), heatScale(true).map(light)];
  for (let at = 8; at < 256; at += 8) {
    expect(day[at]).toBeLessThan(day[at - 8]);
    expect(night[at]).toBeGreaterThan(night[at - 8]);
  }
});

test("batches hold every visible line once, strongest first", () => {
  const lines = linesOf(
    head([
      [0.9, 0.1],
      [0.0001, 0.9999],
    ]),
    everything,
  );
  const made = batches([{ lines, colour: [0, 0, 0] }]);
  expect(made.reduce((sum, batch) => sum + batch.from.length, 0)).toBe(3);
  expect(made.map((batch) => batch.alpha)).toEqual([...made.map((batch) => batch.alpha)].sort((a, b) => b - a));
});

test("a thumbnail's ink runs from the token that looks to the one looked at", () => {
  const made = ink(
    head([
      [0, 1],
      [0, 0],
    ]),
    4,
    2,
  );
  expect(made[0]).toBeCloseTo(1);
  expect(made[4 + 3]).toBeCloseTo(1);
  expect(made[4]).toBe(0);
});

test("no token becomes markup in a figure", () => {
  expect(escaped(`</text><script>&"'\u0000`)).toBe("&#60;/text&#62;&#60;script&#62;&#38;&#34;&#39;\ufffd");
  expect(escaped("\t\n🐈\ud83d\udc08\ud83d\ufffe\u000b")).toBe("\t\n🐈🐈\ufffd\ufffd\ufffd");
  const figure = new Figure(10, 10, "#fff", "#000");
  figure.text(0, 0, "<b>");
  expect(String(figure)).not.toContain("<b>");
});

test("long inputs render only the rows in view", () => {
  expect(rowHeight(2048, 700, false)).toBe(18);
  expect(rowHeight(10, 700, false)).toBe(70);
  expect(rowsInView(2048, 18, 18_000, 700).length).toBeLessThan(50);
  expect(rowsInView(2048, 0.35, 0, 700).length).toBeLessThan(80);
});

test("maps fill the room without leaving it", () => {
  for (const box of boxes(12, 30, 30, 900, 700, { left: 8, top: 26 })) {
    expect(box.x + 30 * box.cell).toBeLessThanOrEqual(900);
    expect(box.y + 30 * box.cell).toBeLessThanOrEqual(700);
  }
});

test("text on a ground is the ink that differs more", () => {
  expect(inkOn([255, 255, 255])).toBe("#000");
  expect(inkOn([0, 0, 0])).toBe("#fff");
  expect(inkOn([231, 154, 87])).toBe("#000"); // white has 2.3 : 1 there
  expect(inkOn([118, 118, 118])).toBe("#000"); // 4.6 against 4.5 : 1, the grey where both are nearly the same
  expect(inkOn([112, 112, 112])).toBe("#fff");
});
