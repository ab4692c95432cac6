// Cameras, squares, names and search of the map.
import { describe, expect, test } from "vitest";
import {
  between,
  fitOne,
  flatten,
  fromNumbers,
  orbitBy,
  shapeOf,
  single,
  START_ORBIT,
  toNumbers,
  turning,
  zoomAt,
  type Flat,
} from "../src/map/camera";
import { gridOf, nearest } from "../src/map/grid";
import { apart, HIGH, placed } from "../src/map/labels";
import { ranking, sidesOf, some } from "../src/map/search";
import { everyPoint, shuffled, sift } from "../src/map/sift";

const SIZE = { width: 900, height: 700 };

describe("camera", () => {
  test("what is under the cursor stays there while zooming", () => {
    const before = { x: -30, y: -12, scale: 53 };
    const after = zoomAt(before, 300, 200, 1.7, 1, 1e6);
    expect((after.x + 300) / after.scale).toBeCloseTo((before.x + 300) / before.scale, 9);
    expect((after.y + 200) / after.scale).toBeCloseTo((before.y + 200) / before.scale, 9);
    const back = zoomAt(after, 300, 200, 1 / 1.7, 1, 1e6);
    expect(back.x).toBeCloseTo(before.x, 6);
    expect(back.scale).toBeCloseTo(before.scale, 6);
  });

  test("a head is entered later than it is left, so that nothing flickers", () => {
    const at = (share: number) => ({ x: 0, y: 0, scale: share * 700 });
    expect(single(false, at(0.65), SIZE)).toBe(false);
    expect(single(true, at(0.65), SIZE)).toBe(true);
    expect(single(false, at(0.75), SIZE)).toBe(true);
    expect(single(true, at(0.5), SIZE)).toBe(false);
  });

  test("an address brings the same view back, in another window its middle", () => {
    const camera = { x: 1234, y: 567, scale: 410 };
    const numbers = toNumbers(camera, SIZE, START_ORBIT);
    const again = fromNumbers(numbers, SIZE);
    expect(again.x).toBeCloseTo(camera.x, 0);
    expect(again.scale).toBeCloseTo(camera.scale, 0);
    const small = { width: 450, height: 350 };
    const other = fromNumbers(numbers, small);
    expect((other.x + 225) / other.scale).toBeCloseTo((camera.x + 450) / camera.scale, 2);
  });

  test("a flight starts and ends where it should", () => {
    const [from, to] = [{ x: -30, y: -12, scale: 90 }, fitOne({ x: 3.3, y: 3.7 }, SIZE)];
    expect(between(from, to, 0)).toEqual(from);
    expect(between(from, to, 1).x).toBeCloseTo(to.x, 6);
  });

  test("turning keeps lengths, and tilt stops at the poles", () => {
    const m = turning({ turn: 0.7, tilt: -0.4 }, 3);
    for (const column of [0, 3, 6]) expect(Math.hypot(m[column], m[column + 1], m[column + 2])).toBeCloseTo(1, 9);
    expect(orbitBy(START_ORBIT, 0, 99).tilt).toBeCloseTo(Math.PI / 2);
    expect(turning(START_ORBIT, 2)).toEqual([1, 0, 0, 0, 1, 0, 0, 0, 1]);
  });

  test("one unit is as long across as down", () => {
    expect(shapeOf(Float32Array.from([0, 0, 8, 2]), 0, 2)).toEqual([1, 0.25, 1]);
    const corners = Uint16Array.from([0, 0, 65535, 65535]);
    const flat = flatten(corners, 0, 2, 2, [1, 0.25, 1], START_ORBIT);
    expect(flat.x[1] - flat.x[0]).toBeCloseTo(4 * (flat.y[0] - flat.y[1]), 5);
  });
});

describe("squares", () => {
  const made = (count: number): Flat => {
    let seed = 7;
    const roll = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    return {
      x: Float32Array.from({ length: count }, roll),
      y: Float32Array.from({ length: count }, roll),
      near: new Float32Array(count),
    };
  };

  test("find what looking at every point finds", () => {
    const flat = made(3000);
    const grid = gridOf(flat);
    for (let turn = 0; turn < 200; turn++) {
      const [x, y] = [(turn * 0.37) % 1, (turn * 0.61) % 1];
      let best = -1;
      let least = 0.02 ** 2;
      flat.x.forEach((_, at) => {
        const away = (flat.x[at] - x) ** 2 + (flat.y[at] - y) ** 2;
        if (away < least) [least, best] = [away, at];
      });
      expect(nearest(grid, x, y, 0.02)).toBe(best);
    }
  });

  test("points beyond the panel are found too, and none where none is near", () => {
    const grid = gridOf({
      x: Float32Array.from([-0.2, 0.5]),
      y: Float32Array.from([1.3, 0.5]),
      near: new Float32Array(2),
    });
    expect(nearest(grid, -0.2, 1.3, 0.01)).toBe(0);
    expect(nearest(grid, 0.9, 0.1, 0.05)).toBe(-1);
  });
});

describe("what is worth drawing", () => {
  const points = 400;
  const places = Uint16Array.from({ length: 2 * 2 * points }, (_, at) => (at * 40503) % 65536);
  const panels = [{ head: 1, x: 10.3, y: 5.6, shape: [1, 0.5, 1] }];
  const pixelOf = (number: number) => {
    const at = 2 * number;
    const [x, y] = [
      10.3 + 20 * (0.5 + 0.95 * (places[at] / 65535 - 0.5)),
      5.6 + 20 * (0.5 - 0.95 * 0.5 * (places[at + 1] / 65535 - 0.5)),
    ];
    return `${Math.floor(x)} ${Math.floor(y)}`;
  };

  test("on a small panel it is the nearest point of each pixel, and every marked one", () => {
    const best = new Map<string, number>();
    for (let at = 0; at < points; at++) {
      const pixel = pixelOf(points + at);
      const old = best.get(pixel);
      if (old === undefined || shuffled(at) < shuffled(old)) best.set(pixel, at);
    }
    const data = { places, points, dims: 2 };
    const list = sift(panels, data, 20, 0.95, START_ORBIT, null);
    expect([...list].sort()).toEqual([...best.values()].map((at) => points + at).sort());
    expect(list.length).toBeLessThan(points);
    const marks = Uint8Array.from({ length: points }, (_, at) => Number(at % 7 === 0));
    const marked = sift(panels, data, 20, 0.95, START_ORBIT, marks);
    for (let at = 0; at < points; at += 7) expect(marked).toContain(points + at);
    expect(new Set(marked).size).toBe(marked.length);
  });

  test("on a large panel it is every point once, and a part of them is spread over all", () => {
    const list = sift(panels, { places, points, dims: 2 }, 300, 0.95, START_ORBIT, null);
    expect([...list].sort((a, b) => a - b)).toEqual(Array.from({ length: points }, (_, at) => points + at));
    const some = everyPoint(panels, { places, points, dims: 2 }, 50);
    expect(some.length).toBe(50);
    expect(some.at(-1)! - some[0]).toBeGreaterThan(300);
  });
});

describe("names", () => {
  test("never cover each other and never leave the view", () => {
    const wishes = Array.from({ length: 500 }, (_, at) => ({
      at,
      x: (at * 37) % 300,
      y: (at * 53) % 200,
      text: "word",
      width: 30 + (at % 20),
    }));
    const labels = placed(wishes, 300, 200);
    expect(labels.length).toBeGreaterThan(20);
    labels.forEach((one, at) => labels.slice(at + 1).forEach((other) => expect(apart(one, other)).toBe(true)));
    for (const { left, top, width } of labels) {
      expect(left >= 0 && top >= 0 && left + width <= 300 && top + HIGH <= 200).toBe(true);
    }
  });

  test("the first wish comes first", () => {
    const one = { at: 3, x: 50, y: 50, text: "a", width: 60 };
    expect(placed([one, { ...one, at: 4 }], 300, 200)[0].at).toBe(3);
  });
});

describe("search", () => {
  test("a head that brings hits together comes before one that scatters them", () => {
    // Two heads of 40 queries and 40 keys on a line; hits are every fifth.
    const [heads, points] = [2, 80];
    const places = new Uint16Array(heads * points * 2);
    const marks = Uint8Array.from({ length: points }, (_, at) => Number(at % 5 === 0));
    for (let at = 0; at < points; at++) {
      places[2 * at] = (at % 40) * 1000;
      places[2 * (points + at)] = marks[at] ? 20_000 + at : (at % 40) * 1600;
    }
    const data = {
      places,
      points,
      dims: 2,
      shapes: [
        [1, 1, 1],
        [1, 1, 1],
      ],
    };
    const ranked = ranking(heads, data, sidesOf(marks, 40));
    expect(ranked.map((one) => one.head)).toEqual([1, 0]);
    expect(ranked[0].spread).toBeLessThan(0.05);
    // Every fifth point of an even line: mean distance of 8 points 5 apart over that of 40 points.
    expect(ranked[1].spread).toBeCloseTo((5 * (8 + 1)) / 3 / ((40 + 1) / 3), 2);
  });

  test("a single hit has no spread", () => {
    const data = { places: new Uint16Array(8), points: 4, dims: 2, shapes: [[1, 1, 1]] };
    expect(ranking(1, data, sidesOf(Uint8Array.from([1, 0, 0, 0]), 2))).toEqual([]);
  });

  test("a sample is even and never longer than asked", () => {
    expect([
      ...some(
        Uint32Array.from({ length: 100 }, (_, at) => at),
        4,
      ),
    ]).toEqual([12, 37, 62, 87]);
  });
});
