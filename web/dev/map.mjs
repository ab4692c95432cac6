// Made-up maps for the fake: a curve of positions in even heads, clusters of words in odd ones.
const COLUMN = { kind: "number", scale: "linear", whole: true };

export function mapAbout(heads, n) {
  const groups = [{ name: "decoder", heads, queries: n, keys: n }];
  const one = (method, dims) => ({ name: `${method}-${dims}d`, method, dims, groups, options: {} });
  return { maps: [one("umap", 2), one("umap", 3), one("pca", 2)], no_maps: "", can_compute: false, estimates: [], can_add: false, added: [], atlases: [] };
}

export function mapPlaces(map, group, heads, points, roll) {
  const dims = Number(map.at(-2));
  const places = new Uint16Array(heads.length * points.length * dims);
  heads.forEach((_, head) => {
    points.forEach(({ position, word, query }, at) => {
      const angle = head % 2 ? word * 2.4 + head : position / 7 + head;
      const far = (head % 2 ? 0.25 + 0.02 * (word % 9) : 0.12 + position / 400) + (query ? 0.03 : 0);
      const own = [Math.cos(angle) * far, Math.sin(angle) * far * 0.7, Math.sin(angle * 1.7) * far];
      for (let axis = 0; axis < dims; axis++) places[(head * points.length + at) * dims + axis] = 65535 * Math.min(1, Math.max(0, 0.5 + own[axis] + 0.05 * (roll() + roll() - 1)));
    });
  });
  const figures = ["full.correlation", ...["map", "pca", "shuffled"].flatMap((of) => ["correlation", "trust", "kept"].map((name) => `${of}.${name}`))];
  const box = Float32Array.from({ length: heads.length * 2 * dims }, (_, at) => (at % (2 * dims) < dims ? 0 : 8 + (at % dims)));
  return {
    map, group, heads, queries: points.length / 2, places: { grid: places, type: "u2", shape: [heads.length, points.length, dims] },
    box: { grid: box, type: "f4", shape: [heads.length, 2, dims] }, c: { grid: new Float32Array(heads.length).fill(1.5), type: "f4", shape: [heads.length] },
    figures, fidelity: { grid: Float32Array.from({ length: heads.length * 10 }, () => -roll()), type: "f4", shape: [heads.length, 10] },
  };
}

export function mapPoints(map, group, points, texts, longest) {
  const list = (of, type, kind) => ({ grid: kind.from(points, of), type, shape: [points.length] });
  const number = (name, label, value, high) => ({ name, label, ...COLUMN, low: 0, high, values: list((one) => (65534 * value(one)) / high, "u2", Uint16Array) });
  return {
    map, group, queries: points.length / 2, token: list((one) => one.position, "u4", Uint32Array), input: list((one) => one.input, "u2", Uint16Array), position: list((one) => one.position, "u2", Uint16Array),
    texts, text: list((one) => one.word, "u2", Uint16Array), special: list((one) => Number(one.position === 0), "u1", Uint8Array),
    columns: [
      number("position", "position in the input", (one) => one.position / longest, 1),
      { name: "mod5", label: "position modulo 5", kind: "name", names: ["0", "1", "2", "3", "4"], values: list((one) => one.position % 5, "u1", Uint8Array) },
      number("length", "letters", (one) => texts[one.word].length, 60),
    ],
  };
}
