// Colours of the map, norms, and a text that joins it.
import { describe, expect, test } from "vitest";
import { colouring, told } from "../src/map/colouring";
import { mapData, normAt, normSpan, normsOf, pointOf, type MapData } from "../src/map/data";
import { joined } from "../src/map/join";
import { strongest } from "../src/panels/map/lines";
import type { MapExtra, MapNorms, MapPlaces, MapPoints } from "../src/source/wire";
import { about, head } from "./fixtures";

const u2 = (list: number[]) => ({ data: Uint16Array.from(list), shape: [list.length] });
const u1 = (list: number[]) => ({ data: Uint8Array.from(list), shape: [list.length] });

/** One input of two tokens, two heads: points are query 0, query 1, key 0, key 1. */
const places: MapPlaces = {
  map: "pca-2d",
  group: "decoder",
  heads: ["L0H0", "L2H1"],
  queries: 2,
  places: {
    data: Uint16Array.from([0, 0, 65535, 65535, 0, 65535, 65535, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
    shape: [2, 4, 2],
  },
  box: { data: Float32Array.from([0, 0, 10, 10, 0, 0, 4, 2]), shape: [2, 2, 2] },
  c: { data: Float32Array.from([2, 1]), shape: [2] },
  figures: ["full.correlation", "map.correlation"],
  fidelity: { data: Float32Array.from([-0.9, -0.5, -0.8, -0.25]), shape: [2, 2] },
};
const points: MapPoints = {
  image: null,
  box: null,
  map: "pca-2d",
  group: "decoder",
  queries: 2,
  token: { data: Uint32Array.from([0, 1, 0, 1]), shape: [4] },
  input: u2([0, 0, 0, 0]),
  position: u2([0, 1, 0, 1]),
  texts: ["a", "b"],
  text: u2([0, 1, 0, 1]),
  special: u1([0, 0, 0, 0]),
  columns: [
    {
      name: "position",
      label: "position",
      kind: "number",
      scale: "linear",
      whole: false,
      low: 0,
      high: 1,
      values: u2([0, 65534, 0, 65535]),
    },
    { name: "mod5", label: "modulo 5", kind: "name", names: ["0", "1"], values: u1([0, 1, 0, 255]) },
    {
      name: "frequency",
      label: "frequency",
      kind: "number",
      scale: "log",
      whole: true,
      low: 1,
      high: 100,
      values: u2([0, Math.round((9 / 99) * 65534), 65534, 65534]),
    },
  ],
};
const norms: MapNorms = {
  map: "pca-2d",
  group: "decoder",
  queries: 2,
  values: { data: Uint8Array.from([0, 255, 0, 255, 0, 255, 0, 255]), shape: [2, 4] },
  low: { data: Float32Array.from([1, 4, 1, 1]), shape: [2, 2] },
  high: { data: Float32Array.from([2, 8, 2, 2]), shape: [2, 2] },
};
const data: MapData = mapData(about(), places, points);
const light = { palette: "default", dark: false } as const;
const rgbOf = (made: { scale: Uint8Array; values: Uint8Array }, at: number) => [
  ...made.scale.subarray(4 * (made.values[at] + (at < 2 ? 0 : 256)), 4 * (made.values[at] + (at < 2 ? 0 : 256)) + 3),
];

describe("colours", () => {
  test("queries are green and keys pink, or blue and orange", () => {
    const plain = colouring(data, "side", light);
    expect(rgbOf(plain, 0)).toEqual([0x5f, 0xb9, 0x6c]);
    expect(rgbOf(plain, 2)).toEqual([0xe3, 0x37, 0x8f]);
    const safe = colouring(data, "side", { palette: "safe", dark: false });
    expect(rgbOf(safe, 0)).toEqual([0x2b, 0x7b, 0xba]);
    expect(rgbOf(safe, 2)).toEqual([0xe1, 0x81, 0x2c]);
  });

  test("early positions are lighter than late ones, and what has none is grey", () => {
    const made = colouring(data, "position", light);
    const lightness = (at: number) => rgbOf(made, at).reduce((sum, part) => sum + part, 0);
    expect(lightness(0)).toBeGreaterThan(lightness(1));
    expect(rgbOf(made, 3)).toEqual([178, 182, 190]);
    expect(made.legend).toMatchObject({ low: "0", high: "1" });
  });

  test("modulo 5 has five hues, paler for keys", () => {
    const made = colouring(data, "mod5", light);
    expect(rgbOf(made, 0)).toEqual([0xe3, 0x37, 0x8f]);
    expect(rgbOf(made, 1)).toEqual([0xed, 0xb5, 0x0e]);
    expect(rgbOf(made, 2).every((part, at) => part >= rgbOf(made, 0)[at])).toBe(true);
  });

  test("a logarithmic scale gives ten times as many the same step", () => {
    const made = colouring(data, "frequency", light);
    expect([...made.values]).toEqual([0, 127, 254, 254]);
    expect(told(points.columns[2], 1)).toBe("10");
    expect(made.legend).toMatchObject({ low: "1", high: "100", note: "log scale" });
  });

  test("a name that is not there falls back to the sides", () => {
    expect(colouring(data, "nonsense", light).legend.names.map((one) => one.text)).toEqual(["query", "key"]);
  });
});

describe("lengths", () => {
  test("queries and keys share one scale, so that a gap shows, and scaling closes it", () => {
    const mine = normsOf(norms);
    expect(normSpan(mine, data, 0, false)).toEqual([0, 1 / 7, 3 / 7, 1]);
    // c = 2: queries 2 to 4, keys 2 to 4.
    expect(normSpan(mine, data, 0, true)).toEqual([0, 1, 0, 1]);
    expect(normAt(mine, data, 0, 3, false)).toBe(8);
  });
});

describe("points", () => {
  test("a token is found on its side, and what is not on the map is not", () => {
    expect(pointOf(data, 0, "key", 1)).toBe(3);
    expect(pointOf(data, 5, "key", 1)).toBe(-1);
    expect(data.spots).toEqual([
      { column: 0, row: 0 },
      { column: 1, row: 1 },
    ]);
    expect(data.figure(1, "map.correlation")).toBe(-0.25);
    // A figure that this map does not have is not the last figure of the head before.
    expect(data.figure(1, "map.strongest")).toBeNaN();
  });

  test("lines run to the two strongest keys that are on the map", () => {
    const rows = head([
      [1, 0],
      [0.7, 0.3],
    ]);
    expect(strongest(data, 0, rows).map(({ from, to }) => [from, to])).toEqual([
      [0, 2],
      [1, 2],
      [1, 3],
    ]);
  });

  test("an added text joins at the end of each side, and a box that is too small grows", () => {
    const extra: MapExtra = {
      places: { data: Float32Array.from([0.5, 0.5, 2, 0.5, 0.5, 0.5, 0.5, 0.5]), shape: [2, 2, 2] },
      points: {
        ...points,
        queries: 1,
        token: { data: Uint32Array.from([9, 9]), shape: [2] },
        input: u2([1, 1]),
        position: u2([0, 0]),
        texts: ["c"],
        text: u2([0, 0]),
        special: u1([0, 0]),
        columns: [{ ...points.columns[0], values: u2([65534, 65534]) } as never],
      },
      norms: { ...norms, queries: 1, values: { data: Uint8Array.from([255, 255, 0, 0]), shape: [2, 2] } },
    };
    const all = joined({ places, points, norms }, extra);
    const more = mapData(about(), all.places, all.points);
    expect([...more.input]).toEqual([0, 0, 1, 0, 0, 1]);
    expect([...more.text].map((at) => more.texts[at])).toEqual(["a", "b", "c", "a", "b", "c"]);
    expect(more.queries).toBe(3);
    // Head 0 reaches twice as far to the right now: what lay at the end lies in the middle.
    expect([...all.places.box.data.subarray(0, 4)]).toEqual([0, 0, 20, 10]);
    expect(more.places[2]).toBe(32768);
    expect([...more.places.subarray(10, 12)]).toEqual([65535, 32768]);
    expect([...(all.norms?.values.data ?? [])]).toEqual([0, 255, 255, 0, 255, 255, 0, 255, 0, 0, 255, 0]);
    expect([...more.colours[0].values.data]).toEqual([0, 65534, 65534, 0, 65535, 65534]);
    expect(more.colours[1].values.data[2]).toBe(255);
  });
});
