// What the page says of a head's map: three grades, and honest words where nothing was measured.
import { describe, expect, test } from "vitest";
import { chanceOf, figureRows, keeps, verdict } from "../src/map/verdict";

const figures = (table: Record<string, number>) => (name: string) => table[name] ?? NaN;
const of = (share: number, chance: number, visible = -0.6, more: Record<string, number> = {}) =>
  verdict(figures({ "map.strongest": share, chance, "map.visible": visible, ...more }));

describe("grades", () => {
  test("a map that keeps its promise says so with its number", () => {
    expect(of(0.94, 0.2)).toMatchObject({ grade: "most", short: "94", badge: "near means attended: 94 of 100" });
    expect(of(0.94, 0.2).words).toBe("Here near does mean attended: 94 of 100 (chance 20).");
  });

  test("between, and little, name chance", () => {
    expect(of(0.61, 0.23).words).toBe("Near means attended in part: 61 of 100 (chance 23).");
    expect(of(0.31, 0.24).grade).toBe("little");
    expect(of(0.31, 0.24).words).toBe("This head’s map keeps little (31 of 100, chance 24); look at the lines.");
  });

  test("a large share that chance explains is no merit", () => {
    expect(of(0.86, 0.8).grade).toBe("part"); // 0.3 of the way from 80 to 100
    expect(of(0.84, 0.8).grade).toBe("little"); // a fifth
    expect(of(0.95, 0.92).grade).toBe("unknown");
    expect(of(0.95, 0.92).words).toContain("too short");
  });

  test("chance is what the shuffled map reaches, where that is more", () => {
    const table = { "map.strongest": 0.5, chance: 0.2, "shuffled.strongest": 0.4, "map.visible": -0.5 };
    expect(chanceOf(figures(table))).toBe(0.4);
    expect(verdict(figures(table)).grade).toBe("little");
  });

  test("distances that do not follow the logits spoil the grade; an unknown order does not", () => {
    expect(of(0.94, 0.2, -0.2).grade).toBe("part");
    expect(of(0.94, 0.2, 0.1).grade).toBe("little");
    expect(of(0.94, 0.2, NaN).grade).toBe("most");
  });

  test("the grade never falls as the share rises", () => {
    const rank = { little: 0, part: 1, most: 2, unknown: -1 };
    for (const chance of [0, 0.2, 0.5, 0.8]) {
      let before = 0;
      for (let share = 0; share <= 1; share += 0.01) {
        const now = rank[of(share, chance).grade];
        expect(now).toBeGreaterThanOrEqual(before);
        before = now;
      }
      expect(before).toBe(2);
    }
  });

  test("a head that attends to special tokens says so", () => {
    expect(of(0.9, 0.2, -0.6, { to_special: 0.97 }).sink).toContain("97 of 100 queries");
    expect(of(0.9, 0.2, -0.6, { to_special: 0.1 }).sink).toBe("");
  });
});

describe("maps of earlier versions", () => {
  test("the correlation is given without a grade, and never claims that near means attended", () => {
    const old = verdict(figures({ "map.correlation": -0.434 }));
    expect(old).toMatchObject({ grade: "unknown", short: "−.43", badge: "fidelity −.43" });
    expect(old.words).toContain("was not measured");
    expect(verdict(figures({})).short).toBe("–");
  });

  test("the table lists what there is", () => {
    expect(figureRows(figures({ "map.correlation": -0.4, "full.correlation": -0.9 })).map(({ name }) => name)).toEqual([
      "correlation",
    ]);
    const rows = figureRows(figures({ "map.strongest": 0.9, chance: 0.3, "pca.overlap": 0.1 }));
    expect(rows.map(({ name }) => name)).toEqual(["strongest", "overlap"]);
    expect(rows[0].cells.map(({ value }) => value)).toEqual([NaN, 0.9, NaN, NaN, 0.3]);
  });
});

test("heads are dimmed below what is asked for", () => {
  expect((["most", "part", "little", "unknown"] as const).map((grade) => keeps(grade, "part"))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(keeps("unknown", "any")).toBe(true);
});
