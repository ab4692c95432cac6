// Made-up attention in the packets of the contract, for looking at the page with no Python.

const WORDS =
  "The farmer offered the old mare some hay , but she would not eat it until he had gone back to the house .".split(
    " ",
  );

export function pack(header) {
  const buffers = [];
  let at = 0;
  const plain = (value) => {
    if (value && value.grid) {
      const bytes = Buffer.from(value.grid.buffer, value.grid.byteOffset, value.grid.byteLength);
      const place = { at, type: value.type, shape: value.shape };
      buffers.push(bytes, Buffer.alloc(-bytes.length & 7));
      at += bytes.length + (-bytes.length & 7);
      return place;
    }
    if (Array.isArray(value)) return value.map(plain);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
    return value;
  };
  const json = Buffer.from(JSON.stringify(plain(header)));
  const start = Buffer.alloc(4);
  start.writeUInt32LE(json.length);
  return Buffer.concat([start, json, Buffer.alloc(-(4 + json.length) & 7), ...buffers]);
}

/** A repeatable stream of numbers in [0, 1). */
function dice(seed) {
  let s = seed + 1;
  return () => {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    return (s >>> 0) / 4294967296;
  };
}

export class Fake {
  constructor({ tokens = 24, layers = 6, heads = 8, pair = false, towers = 1, k = 0 } = {}) {
    Object.assign(this, { n: tokens, depth: layers, heads, pair, k });
    const layer = (number, queries, keys) => ({
      layer: number,
      heads,
      groups: heads / 2,
      width: 32,
      value_width: 32,
      has_vectors: true,
      queries,
      keys,
    });
    const tower = (name, role, queries, keys) => ({
      name,
      role,
      queries,
      keys,
      depth: layers,
      layers: Array.from({ length: layers }, (_, number) => layer(number, queries, keys)),
    });
    this.towers =
      towers === 1
        ? [tower("decoder", "causal", "text", "text")]
        : [
            tower("encoder", "self", "source", "source"),
            tower("decoder", "causal", "target", "target"),
            tower("cross", "cross", "target", "source"),
          ];
  }

  answer(path) {
    const [kind, ...rest] = path.split("/");
    return pack(this[kind](...rest));
  }

  about() {
    const input = (number, label) => ({ number, label, kind: "text", second: this.pair });
    return {
      title: "synthetic",
      model: "synthetic:six",
      model_class: "SyntheticForLooking",
      kind: "atlas",
      receipt_line: "capture exact (1.2e-7)",
      exact: true,
      inputs: [input(0, WORDS.join(" ").slice(0, 48)), input(1, "The nurse asked the doctor …")],
      towers: this.towers,
      has_values: true,
      notes: [],
      maps: [],
      no_maps: "",
      can_compute: false,
      estimates: [],
      can_add: false,
      added: [],
      atlases: [],
      can_edit: false,
      no_edits: "there is no model to edit; open an atlas with attention-atlas serve x.atlas --model MODEL",
      predicts: "",
    };
  }

  input(number) {
    const text = (at) =>
      at === 0
        ? "[CLS]"
        : at === 5
          ? "</script><img src=x onerror=alert(1)>"
          : (at % WORDS.length === 9 ? "" : "·") + (Number(number) && at === 2 ? "nurse" : WORDS[at % WORDS.length]);
    const texts = Array.from({ length: this.n }, (_, at) => text(at));
    const column = (kind, type, of) => ({
      grid: kind.from({ length: this.n }, (_, at) => of(at)),
      type,
      shape: [this.n],
    });
    const tokens = {
      texts,
      raws: texts,
      ids: column(Int32Array, "i4", (at) => at),
      special: column(Uint8Array, "u1", (at) => Number(at === 0)),
      punctuation: column(Uint8Array, "u1", () => 0),
      entry: column(Uint16Array, "u2", (at) => at),
      segment: column(Int16Array, "i2", (at) => Number(this.pair && at > this.n / 2)),
      word: column(Int32Array, "i4", (at) => (at === 0 ? -1 : Math.floor(at / 1.3))),
      row: null,
      column: null,
      generated: Math.max(0, this.n - 2),
    };
    const names = [...new Set(this.towers.flatMap((tower) => [tower.queries, tower.keys]))];
    return {
      number: Number(number),
      text: WORDS.join(" "),
      second: this.pair ? "A second sentence." : null,
      boundary: -1,
      streams: names.map((name) => ({ name, tokens })),
    };
  }

  vectors(input, head) {
    const [, layer, number] = /L(\d+)H(\d+)/.exec(head).map(Number);
    const tower = this.towers.find((one) => head.startsWith(`${one.name}.`)) ?? this.towers[0];
    const roll = dice(1 + layer * 131 + number * 17 + Number(input) * 7);
    const make = (bend) =>
      Float32Array.from(
        { length: this.n * 32 },
        (_, at) => (roll() + roll() + roll() - 1.5) * 2 + bend(Math.floor(at / 32), at % 32),
      );
    const turn = (at, d) => 1.6 * Math.cos((at * (1 + ((d >> 1) % 5))) / 9 + (d % 2) * 1.57);
    const query = make((at, d) => turn(at - (number % 3), d) + (d === 3 ? number / 2 : 0));
    const key = make((at, d) => turn(at, d) + (d === 3 && at === 0 ? 3 : 0));
    const grid = (data) => ({ grid: data, type: "f4", shape: [this.n, 32] });
    return {
      input: Number(input),
      head,
      scale: 32 ** -0.5,
      softcap: null,
      sink: null,
      mask: tower.role === "causal" ? "causal" : "full",
      shared: [`L${layer}H${number & ~1}`, `L${layer}H${number | 1}`],
      query: grid(query),
      key: grid(key),
      value: grid(make(() => 0)),
      added: null,
      seen: null,
    };
  }

  weights(input, tower, layer, head) {
    const prefix = this.towers.length > 1 ? `${tower}.` : "";
    const { query, key, mask } = this.vectors(input, `${prefix}L${layer}H${head}`);
    const out = new Float32Array(this.n * this.n);
    for (let i = 0; i < this.n; i++) {
      let sum = 0;
      for (let j = 0; j < (mask === "causal" ? i + 1 : this.n); j++) {
        let dot = 0;
        for (let d = 0; d < 32; d++) dot += query.grid[i * 32 + d] * key.grid[j * 32 + d];
        sum += out[i * this.n + j] = Math.exp(dot * 32 ** -0.5);
      }
      for (let j = 0; j < this.n; j++) out[i * this.n + j] /= sum;
    }
    return out;
  }

  edges(input, tower) {
    const rows = this.depth * this.heads * this.n;
    const k = this.k || this.n;
    const each = (size, of) => Array.from({ length: size }, of);
    const weight = this.k ? new Uint16Array(rows * k) : new Float32Array(rows * k);
    const index = new Uint16Array(rows * k);
    const rest = new Uint16Array(rows);
    for (let layer = 0, row = 0; layer < this.depth; layer++) {
      for (let head = 0; head < this.heads; head++) {
        const all = this.weights(input, tower, layer, head);
        for (let i = 0; i < this.n; i++, row++) {
          const own = all.subarray(i * this.n, (i + 1) * this.n);
          if (!this.k) weight.set(own, row * k);
          else {
            const order = [...own.keys()].sort((a, b) => own[b] - own[a]).slice(0, k);
            let left = 1;
            order.forEach(
              (j, at) => (
                (index[row * k + at] = j),
                (weight[row * k + at] = Math.round(Math.sqrt(own[j]) * 65535)),
                (left -= own[j])
              ),
            );
            rest[row] = Math.max(0, Math.round(left * 65535));
          }
        }
      }
    }
    return {
      input: Number(input),
      tower,
      layers: each(this.depth, (_, at) => at),
      heads: each(this.depth, () => this.heads),
      n: each(this.depth, () => this.n),
      m: each(this.depth, () => this.n),
      k,
      index: this.k ? { grid: index, type: "u2", shape: [rows, k] } : null,
      weight: { grid: weight, type: this.k ? "u2" : "f4", shape: [rows, k] },
      rest: { grid: rest, type: "u2", shape: [rows] },
      row_sum: null,
    };
  }

  layer(input, tower, layer) {
    const all = new Float32Array(this.heads * this.n * this.n);
    for (let head = 0; head < this.heads; head++)
      all.set(this.weights(input, tower, layer, head), head * this.n * this.n);
    return {
      input: Number(input),
      tower,
      layer: Number(layer),
      weights: { grid: all, type: "f4", shape: [this.heads, this.n, this.n] },
    };
  }

  rows(input, head) {
    const [, layer, number] = /L(\d+)H(\d+)/.exec(head).map(Number);
    const tower = this.towers.find((one) => head.startsWith(`${one.name}.`)) ?? this.towers[0];
    return {
      input: Number(input),
      head,
      first: 0,
      weights: { grid: this.weights(input, tower.name, layer, number), type: "f4", shape: [this.n, this.n] },
    };
  }
}
