import { seenText } from "../src/panels/tiles/words";
import { describe, expect, test, vi } from "vitest";
import { SIGNED_UNIT, UNIT, type TileCells } from "../src/source/wire";
import { isSigned, pixelsOf, readCell, seenOf, stepsOf, type Cells } from "../src/tiles/cells";
import { labelsOn, stepFor } from "../src/tiles/labels";
import { Loader } from "../src/tiles/loader";
import { nameOf, partOf, spanOf, standIn, tileAt, tilesIn, topLevel } from "../src/tiles/need";
import { around, found, nextOf, running } from "../src/tiles/text";
import { shrunk, SMALL, thumbsIn } from "../src/tiles/thumbs";
import {
  centred,
  clamped,
  levelOf,
  panned,
  readView,
  revealing,
  weightUnder,
  wholeView,
  written,
  zoomed,
} from "../src/tiles/view";
import { inside, startWithin, windowAround } from "../src/tiles/window";

const extent = { rows: 4096, columns: 4096 };
const size = { width: 800, height: 600 };

describe("the view", () => {
  test("the whole pattern fits the lower side", () => {
    expect(wholeView(extent, size)).toEqual({ row: 0, column: 0, cell: 600 / 4096 });
  });

  test.each([0.3, 1, 1.7, 8])("zooming by %f keeps the weight under the cursor", (factor) => {
    const view = { row: 100.5, column: 200.25, cell: 2 };
    const at = (from: typeof view) => [from.row + 321 / from.cell, from.column + 123 / from.cell];
    const after = at(zoomed(view, factor, 123, 321));
    at(view).forEach((place, axis) => expect(after[axis]).toBeCloseTo(place, 9));
  });

  test("a drag moves the pattern with the cursor", () => {
    const view = { row: 100, column: 200, cell: 4 };
    const before = weightUnder(view, extent, 50, 60);
    expect(weightUnder(panned(view, 40, -20), extent, 90, 40)).toEqual(before);
  });

  test("a view never leaves the pattern nor gets smaller than it", () => {
    expect(clamped({ row: -50, column: 9000, cell: 2 }, extent, size)).toEqual({ row: 0, column: 3696, cell: 2 });
    expect(clamped({ row: 5, column: 5, cell: 0.0001 }, extent, size)).toEqual(wholeView(extent, size));
    expect(clamped({ row: 0, column: 0, cell: 999 }, extent, size).cell).toBe(40);
  });

  test("outside of the pattern there is no weight", () => {
    expect(weightUnder({ row: 0, column: 0, cell: 0.1 }, extent, 700, 10)).toBeNull();
  });

  test("an address brings a view back in a window of another size, with the same middle", () => {
    const view = { row: 1000, column: 500, cell: 3 };
    const back = readView(written(view, size), size);
    expect(back.row).toBeCloseTo(view.row, 1);
    expect(back.cell).toBeCloseTo(view.cell, 9);
    const other = { width: 500, height: 500 };
    const small = readView(written(view, size), other);
    expect(small.row + 250 / small.cell).toBeCloseTo(1100, 1);
    expect(500 / small.cell).toBeCloseTo(200, 6);
  });

  test("walking moves the view only when the cell would leave it", () => {
    const view = { row: 100, column: 100, cell: 10 };
    expect(revealing(view, 120, 120, size)).toEqual(view);
    const moved = revealing(view, 165, 120, size);
    expect(moved.column).toBe(100);
    expect((166 - moved.row) * 10).toBeCloseTo(600 - 24, 6);
  });

  test("a centred weight is in the middle", () => {
    const view = centred({ row: 0, column: 0, cell: 10 }, 500, 700, size);
    expect(weightUnder(view, extent, 400, 300)).toEqual({ row: 500, column: 700 });
  });

  test.each([
    [40, 0],
    [2, 0],
    [1.5, 1],
    [1.4, 1],
    [0.7, 2],
    [0.1, 4],
  ])("at %f pixels a weight, level %i is shown: its cells have 1.5 to 3 pixels", (cell, level) => {
    expect(levelOf(cell, 4)).toBe(level);
  });
});

describe("which tiles", () => {
  test("the coarsest level has one tile", () => {
    expect([256, 257, 4096, 32768].map((rows) => topLevel({ rows, columns: 10 }))).toEqual([0, 1, 4, 7]);
  });

  test("a view needs the tiles it touches, the middle first, and none beyond the input", () => {
    const tiles = tilesIn({ row: 200, column: 3900, cell: 2 }, 0, extent, size);
    expect(tiles.map(nameOf).sort()).toEqual(["0/0/15", "0/1/15"]);
    expect(nameOf(tiles[0])).toBe("0/1/15");
    expect(tilesIn(wholeView(extent, size), 4, extent, size).map(nameOf)).toEqual(["4/0/0"]);
  });

  test("until a tile comes, its part of the next coarser one stands in", () => {
    const known = new Set(["4/0/0", "2/1/3"]);
    const has = (tile: { level: number; row: number; column: number }) => known.has(nameOf(tile));
    expect(standIn({ level: 0, row: 6, column: 13 }, 4, has)).toEqual({
      level: 2, row: 1, column: 3, x: 64, y: 128, side: 64,
    }); // prettier-ignore
    expect(standIn({ level: 0, row: 0, column: 0 }, 4, has)).toEqual(partOf({ level: 0, row: 0, column: 0 }, 4));
    expect(standIn({ level: 0, row: 0, column: 0 }, 4, () => false)).toBeNull();
  });

  test("a cell tells its tokens, cut at the end of the input", () => {
    expect(spanOf(3, 21, 4096)).toEqual([16, 23]);
    expect(spanOf(3, 99, 100)).toEqual([96, 99]);
    expect(tileAt(1, 511, 512)).toEqual({ level: 1, row: 0, column: 1 });
  });
});

/** Cells as they are sent: roots in 65535ths of the largest. */
function sent(strongest: number[], mass: number[], shape: [number, number]): TileCells {
  const [peak, most] = [Math.max(...strongest), Math.max(...mass)];
  const roots = (values: number[], top: number) =>
    Uint16Array.from(values, (value) => Math.round(UNIT * Math.sqrt(value / top)));
  return {
    strongest: { data: roots(strongest, peak), shape },
    mass: { data: roots(mass, most), shape },
    peak,
    most,
  };
}

describe("cells", () => {
  const cells: Cells = {
    level: 1,
    row: 0,
    column: 0,
    step: 1,
    packet: sent([0.5, 0.011, 0.2, 1e-7], [0.9, 0.022, 0.4, 2e-7], [2, 2]),
  };

  test("are coloured as the heat-map colours weights, by strongest or by the mass for each row", () => {
    const step = (weight: number) => Math.round(255 * Math.sqrt(weight));
    expect([...stepsOf(cells, "strongest")]).toEqual([0.5, 0.011, 0.2, 1e-7].map(step));
    expect([...stepsOf(cells, "mean")]).toEqual([0.45, 0.011, 0.2, 1e-7].map(step));
  });

  test("of contributions keep their signs: zero is in the middle of the scale", () => {
    const roots = (values: number[]) =>
      Int16Array.from(values, (value) => Math.round(Math.sign(value) * Math.sqrt(Math.abs(value) / 2) * SIGNED_UNIT));
    const packet = { ...sent([0], [2, 0.25, 0, 0.01], [2, 2]), peak: 2 };
    packet.strongest = { data: roots([-2, 0.25, 0, -0.01]), shape: [2, 2] };
    const signed: Cells = { ...cells, packet };
    expect([isSigned(packet), isSigned(cells.packet)]).toEqual([true, false]);
    expect([...stepsOf(signed, "strongest")]).toEqual([1, 128 + 64, 128, 128 - 13]);
    expect(readCell(signed, 0, 0, { rows: 4, columns: 4 })?.strongest).toBeCloseTo(-2, 3);
    expect(seenOf([signed], "strongest", { top: 0, left: 0, bottom: 4, right: 4 }).seen).toBeCloseTo(2.26, 2);
  });

  test("become opaque pixels in reading order", () => {
    const scale = Array.from({ length: 256 }, (_, at) => [at, 0, 255 - at] as const);
    expect([...pixelsOf(Uint8Array.of(3, 255), scale)]).toEqual([3, 0, 252, 255, 255, 0, 0, 255]);
  });

  test("read their strongest weight, their mass and their mean", () => {
    const read = readCell(cells, 1, 3, { rows: 3, columns: 4 });
    expect(read).toMatchObject({ rows: [0, 1], columns: [2, 3], sampled: false });
    expect(read?.strongest).toBeCloseTo(0.011, 5);
    expect(read?.mean).toBeCloseTo(0.0055, 5);
    // The last row of three stands alone in its cell.
    expect(readCell(cells, 2, 0, { rows: 3, columns: 4 })?.mean).toBeCloseTo(0.2, 4);
    expect(readCell(cells, 4, 0, { rows: 3, columns: 4 })).toBeNull();
  });

  test("tell how much of the attention has a colour that can be seen", () => {
    const whole = { top: 0, left: 0, bottom: 4, right: 4 };
    const { seen, all } = seenOf([cells], "strongest", whole);
    expect(all).toBeCloseTo(1.3220002, 4);
    expect(seen / all).toBeCloseTo(1.322 / 1.3220002, 6);
    const lower = seenOf([cells], "mean", { ...whole, top: 2, left: 2 });
    expect(lower.all).toBeCloseTo(2e-7, 8);
    expect(lower.seen).toBe(0);
  });
});

describe("the loader", () => {
  interface Asked {
    name: string;
    signal: AbortSignal;
    answer: (tile: string) => void;
    fail: (error: Error) => void;
  }
  function loading(most = 10) {
    const asked: Asked[] = [];
    const told = vi.fn();
    const loader = new Loader<string>(
      (name, signal) =>
        new Promise((answer, fail) => {
          asked.push({ name, signal, answer, fail });
        }),
      told,
      most,
    );
    return { loader, asked, told, settle: () => new Promise((done) => setTimeout(done)) };
  }

  test("asks for a few at once, in the order of need", async () => {
    const { loader, asked, told, settle } = loading();
    loader.want(["a", "b", "c", "d", "e"]);
    expect(asked.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    asked[1].answer("tile b");
    await settle();
    expect(loader.get("b")).toBe("tile b");
    expect(told).toHaveBeenCalledTimes(1);
    expect(asked.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
    expect(loader.missing).toBe(4);
  });

  test("drops requests of tiles that left the view, and asks again when they are back", async () => {
    const { loader, asked, settle } = loading();
    loader.want(["a", "b"]);
    loader.want(["b", "z"]);
    expect(asked[0].signal.aborted).toBe(true);
    expect(asked[1].signal.aborted).toBe(false);
    asked[0].answer("too late");
    await settle();
    expect(loader.get("a")).toBeUndefined();
    loader.want(["a"]);
    expect(asked.map(({ name }) => name)).toEqual(["a", "b", "z", "a"]);
  });

  test("keeps the most recently wanted tiles, never fewer than the view needs", async () => {
    const { loader, asked, settle } = loading(2);
    for (const name of ["a", "b"]) {
      loader.want([name]);
      asked.at(-1)?.answer(name);
      await settle();
    }
    loader.want(["a"]);
    loader.want(["c"]);
    asked.at(-1)?.answer("c");
    await settle();
    expect(["a", "b", "c"].map((name) => loader.get(name))).toEqual(["a", undefined, "c"]);
  });

  test("tells why a tile cannot be had and does not ask for ever; on demand it tries again", async () => {
    const { loader, asked, settle } = loading();
    loader.want(["a"]);
    asked[0].fail(new Error("the server is gone"));
    await settle();
    loader.want(["a"]);
    expect(asked).toHaveLength(1);
    expect(loader.failure).toEqual(new Error("the server is gone"));
    expect(loader.missing).toBe(0);
    loader.retry();
    expect(asked).toHaveLength(2);
  });
});

describe("names beside the axes", () => {
  test.each([
    [20, 1],
    [14, 1],
    [7, 2],
    [2, 10],
    [0.15, 100],
  ])("at %f pixels a token every %i-th is named", (cell, step) => {
    expect(stepFor(cell)).toBe(step);
  });

  test("names stand at the middle of their token and at round positions", () => {
    expect(labelsOn(98.5, 7, 60, 104)).toEqual([
      { position: 100, at: 14 },
      { position: 102, at: 28 },
    ]);
  });
});

describe("the text", () => {
  const token = (text: string, word: number, special = false) => ({ text, word, special });
  const marked = running([token("The", 0), token("·far", 1), token("mer", 1), token("·looked", 2), token(".", 2)]);
  const unmarked = running([token("[CLS]", -1, true), token("un", 0), token("happy", 0), token("cat", 1)]);

  test("runs with its spaces, marked or not", () => {
    expect(marked.text).toBe("The farmer looked.");
    expect(unmarked.text).toBe("[CLS] unhappy cat");
  });

  test("around a token is as long as asked for, and says where it is cut", () => {
    expect(around(marked, 1, 2, 100)).toEqual({ before: "The", here: " farmer", after: " looked." });
    const cut = around(marked, 2, 2, 9);
    expect(cut).toEqual({ before: "…far", here: "mer", after: " lo…" });
    expect(around(marked, 4, 4, 7)).toEqual({ before: "…looked", here: ".", after: "" });
  });

  test("is searched by words over several tokens, by numbers and in a ring", () => {
    expect(found(marked, "FARMER l")).toEqual([1]);
    expect(found(marked, "3")).toEqual([3]);
    expect(found(marked, "1,000")).toEqual([]);
    expect(found(unmarked, "a")).toEqual([2, 3]);
    expect(found(marked, " ")).toEqual([]);
    expect([nextOf([2, 5, 9], 5, 1), nextOf([2, 5, 9], 9, 1), nextOf([2, 5, 9], 2, -1)]).toEqual([9, 2, 9]);
  });
});

describe("small overviews", () => {
  test("keep the strongest cell of each pixel", () => {
    const steps = new Uint8Array(256 * 256);
    steps[5 * 256 + 7] = 9;
    steps[4 * 256 + 6] = 4;
    const small = shrunk(steps, 256, 256);
    expect(small[2 * SMALL + 3]).toBe(9);
    expect(small.reduce((sum, step) => sum + step, 0)).toBe(9);
  });

  test("keep the contribution that is farthest from zero", () => {
    const steps = new Uint8Array(256 * 256).fill(128);
    steps[5 * 256 + 7] = 20;
    steps[4 * 256 + 6] = 200;
    expect(shrunk(steps, 256, 256, 128)[2 * SMALL + 3]).toBe(20);
  });

  test("are made of the rows in view", () => {
    expect(thumbsIn(30, 800, 400, 80)).toEqual([9, 10, 11, 12, 13, 14, 15]);
    expect(thumbsIn(2, 0, 400, 80)).toEqual([0, 1]);
  });
});

describe("the window of the lines", () => {
  test("is around the token and stays inside the input", () => {
    expect(windowAround({ side: "query", position: 1000 }, null, 4096, 4096)).toEqual({ rows: 936, columns: 936 });
    expect(windowAround({ side: "key", position: 5 }, null, 4096, 4096)).toEqual({ rows: 0, columns: 0 });
    expect(windowAround({ side: "query", position: 4095 }, null, 4096, 300)).toEqual({ rows: 3968, columns: 172 });
    expect([startWithin(-5, 4096), startWithin(5000, 4096), startWithin(7, 60)]).toEqual([0, 3968, 0]);
  });

  test("has keys of its own where the picked key is far away", () => {
    const far = windowAround({ side: "query", position: 4000 }, 0, 4096, 4096);
    expect(far).toEqual({ rows: 3936, columns: 0 });
    expect(inside(far, { side: "query", position: 4000 }, 0)).toBe(true);
    expect(inside(far, { side: "query", position: 4000 }, 3990)).toBe(false);
  });
});

describe("the words beside the legend", () => {
  test("say a share of what is in view, and that nothing is where nothing is", () => {
    expect(seenText({ seen: 0.97, all: 1 })).toContain("97 % of the attention in view");
    expect(seenText({ seen: 0, all: 0 })).toContain("no attention here");
  });
});
