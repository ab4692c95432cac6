// All points of a head: sorted into squares, found by window and cursor, counted by density.
import { describe, expect, test } from "vitest";
import { countPoints, fullAt, shadePixels } from "../src/draw/density";
import { START_ORBIT } from "../src/map/camera";
import {
  crowdOf,
  inWindow,
  knownOf,
  marked,
  nearestSlot,
  pixelOf,
  pointOfToken,
  projection,
  type Crowd,
} from "../src/map/crowd";
import type { AllPoints, AllTokens } from "../src/source/wire";

/** The numbers of a simple generator, so that a test repeats. */
function numbers(count: number, most: number): number[] {
  let state = 7;
  return Array.from({ length: count }, () => (state = (state * 48271) % 2147483647) % most);
}

const COUNT = 5000;
const BOX = new Float32Array([-1, -2, 3, 2]);

function given(dims = 2): AllPoints {
  const box = [-2, -2, -1, 4, 3, 1];
  return {
    queries: 2000,
    places: { data: Uint16Array.from(numbers(COUNT * dims, 65536)), shape: [COUNT, dims] },
    box: { data: Float32Array.from([...box.slice(0, dims), ...box.slice(3, 3 + dims)]), shape: [2, dims] },
  };
}

const size = { width: 300, height: 200 };
const view = (crowd: Crowd, side: number, x = 0, y = 0) =>
  projection(crowd, { x, y }, side, [1, 1, 1], { ...START_ORBIT });
const shades = (crowd: Crowd) => ({
  shade: Uint16Array.from(crowd.order, (at) => (at < crowd.queries ? 0 : 256)),
  scale: Uint8Array.from({ length: 2048 }, (_, at) => (at < 1024 ? [10, 20, 30, 255] : [200, 100, 50, 255])[at % 4]),
  marks: null,
});

/** The pixel of a point worked out from the packet alone, as the shader of the sample does. */
function expected(points: AllPoints, at: number, side: number, x: number, y: number): [number, number] {
  const [low, high] = [points.box.data.subarray(0, 2), points.box.data.subarray(2, 4)];
  const share = [0, 1].map((axis) => {
    const place = low[axis] + (points.places.data[2 * at + axis] / 65535) * (high[axis] - low[axis]);
    return (place - BOX[axis]) / (BOX[2 + axis] - BOX[axis]) - 0.5;
  });
  return [x + side * (0.5 + 0.95 * share[0]), y + side * (0.5 - 0.95 * share[1])];
}

describe("points of a window", () => {
  test.each([
    [250, 20, -30],
    [2000, -900, -700],
    [6000, -3000, -3100],
  ])("are those that a plain look at every point finds, at side %i", (side, x, y) => {
    const points = given();
    const crowd = crowdOf(points, BOX);
    const by = view(crowd, side, x, y);
    const wanted: number[] = [];
    for (let at = 0; at < COUNT; at++) {
      const [px, py] = expected(points, at, side, x, y);
      if (px >= 0 && py >= 0 && px < size.width && py < size.height) wanted.push(at);
    }
    const slots = inWindow(crowd, by, size, COUNT) as Uint32Array;
    expect(Array.from(slots, (slot) => crowd.order[slot]).sort((a, b) => a - b)).toEqual(wanted);
    expect(inWindow(crowd, by, size, wanted.length - 1)).toBeNull();
    for (const slot of slots.subarray(0, 50)) {
      const { x: px, y: py } = pixelOf(crowd, by, slot);
      const [ex, ey] = expected(points, crowd.order[slot], side, x, y);
      expect(Math.hypot(px - ex, py - ey)).toBeLessThan(1e-3);
    }
  });

  test("are counted once each, with their colours", () => {
    const crowd = crowdOf(given(), BOX);
    const by = view(crowd, 250, 20, -30);
    const sums = new Uint32Array(4 * size.width * size.height);
    const counted = countPoints(sums, crowd, by, size, shades(crowd));
    const slots = inWindow(crowd, by, size, COUNT) as Uint32Array;
    const queries = slots.filter((slot) => crowd.order[slot] < crowd.queries).length;
    const total = [0, 1, 2, 3].map((part) => sums.reduce((sum, value, at) => (at % 4 === part ? sum + value : sum), 0));
    expect(counted).toBe(slots.length);
    expect(total).toEqual(
      [1, 10, 20, 30].map((query, part) => queries * query + (slots.length - queries) * [1, 200, 100, 50][part]),
    );
  });

  test("of a head in three dimensions are counted too", () => {
    const crowd = crowdOf(given(3), new Float32Array([-2, -2, -1, 4, 3, 1]));
    const sums = new Uint32Array(4 * 400 * 400);
    expect(countPoints(sums, crowd, view(crowd, 400), { width: 400, height: 400 }, shades(crowd))).toBe(COUNT);
  });
});

test("the nearest point to a pixel is the nearest of all, or none within reach", () => {
  const points = given();
  const crowd = crowdOf(points, BOX);
  const by = view(crowd, 250);
  for (const [x, y] of [
    [100, 80],
    [33, 120],
    [151, 151],
  ]) {
    const away = (at: number) =>
      Math.hypot(expected(points, at, 250, 0, 0)[0] - x, expected(points, at, 250, 0, 0)[1] - y);
    const best = [...Array(COUNT).keys()].reduce((a, b) => (away(b) < away(a) ? b : a));
    const slot = nearestSlot(crowd, by, x, y, 7);
    expect(slot < 0 ? -1 : crowd.order[slot]).toBe(away(best) < 7 ? best : -1);
  }
  expect(nearestSlot(crowd, by, -500, -500, 7)).toBe(-1);
});

test("a token leads to its point and a point to its token", () => {
  const tokens: AllTokens = {
    starts: { data: Uint32Array.from([0, 700, 700, 2000]), shape: [4] },
    texts: ["a", "b"],
    text: { data: Uint16Array.from({ length: 2000 }, (_, at) => at % 2), shape: [2000] },
  };
  const crowd = { ...crowdOf(given(), BOX), queries: 2000, count: 4000 };
  const sides = [tokens, tokens] as const;
  expect(knownOf(crowd, sides, 699)).toEqual({ side: "query", input: 0, position: 699, text: "b" });
  expect(knownOf(crowd, sides, 2000 + 701)).toEqual({ side: "key", input: 2, position: 1, text: "b" });
  expect(pointOfToken(crowd, sides, 2, "key", 1)).toBe(2701);
  expect(pointOfToken(crowd, sides, 1, "query", 0)).toBe(-1);
  expect(pointOfToken(crowd, sides, 9, "query", 0)).toBe(-1);
});

test("marks follow the points into their squares", () => {
  const crowd = crowdOf(given(), BOX);
  const marks = marked(crowd, (at) => at % 3 === 0);
  expect(marks.reduce((a, b) => a + b)).toBe(Math.ceil(COUNT / 3));
  expect([...crowd.order].every((at, slot) => marks[slot] === Number(at % 3 === 0))).toBe(true);
});

test("a pixel without points is paper, and one with more points is stronger", () => {
  const sums = Uint32Array.from([0, 0, 0, 0, 1, 10, 20, 30, 6, 60, 120, 180, ...Array<number>(12).fill(0)]);
  const picture = new Uint8ClampedArray(24);
  shadePixels(picture, sums, 3, [250, 250, 250], false);
  expect([...picture.subarray(12, 16)]).toEqual([250, 250, 250, 255]);
  // Beside a point, half as strong as the point itself.
  expect(picture[16]).toBe(Math.round((250 + picture[4]) / 2));
  expect(picture[4]).toBeGreaterThan(picture[8]);
  expect([...picture.subarray(8, 11)]).toEqual([10, 20, 30]);
  expect(fullAt(sums)).toBe(6);
});
