// How is an added text put on an open map? Its queries after the queries, its keys after the keys.
import type { MapExtra, MapNorms, MapPlaces, MapPoints } from "../source/wire";
import type { Column } from "./data";

export interface Joined {
  places: MapPlaces;
  points: MapPoints;
  norms: MapNorms | null;
}

/** Add one input to a map. */
export function joined(all: Joined, extra: MapExtra): Joined {
  const [heads, count, dims] = all.places.places.shape;
  const { queries } = all.places;
  const more = extra.points.queries;
  const sum = count + extra.places.shape[1];
  const { places, box: wider } = widened(all.places, extra);
  const put = <T extends Uint8Array | Uint16Array | Uint32Array | Int16Array | Float32Array>(
    old: T,
    own: ArrayLike<number>,
    parts: number,
    rows: number,
    out: T,
  ): T => {
    const [was, is, now] = [count * parts, extra.places.shape[1] * parts, sum * parts];
    for (let row = 0; row < rows; row++) {
      out.set(old.subarray(row * was, row * was + queries * parts) as never, row * now);
      for (let at = 0; at < more * parts; at++) out[row * now + queries * parts + at] = own[row * is + at];
      out.set(
        old.subarray(row * was + queries * parts, (row + 1) * was) as never,
        row * now + (queries + more) * parts,
      );
      for (let at = more * parts; at < is; at++) out[row * now + was + at] = own[row * is + at];
    }
    return out;
  };
  const long = (of: { data: ArrayLike<number> }, own: ArrayLike<number>) => ({
    data: put(Uint32Array.from(of.data), own, 1, 1, new Uint32Array(sum)),
    shape: [sum],
  });
  const texts = [...all.points.texts];
  const known = new Map(texts.map((text, at) => [text, at]));
  const text = Array.from(extra.points.text.data, (at) => {
    const word = extra.points.texts[at];
    if (!known.has(word)) known.set(word, texts.push(word) - 1);
    return known.get(word) as number;
  });
  const lists = {
    token: long(all.points.token, extra.points.token.data),
    input: long(all.points.input, extra.points.input.data),
    position: long(all.points.position, extra.points.position.data),
    text: long(all.points.text, text),
  };
  const columns = all.points.columns.map((column) => {
    const none = column.values.data instanceof Uint8Array ? 255 : 65535;
    const own = extra.points.columns.find(({ name, kind }) => name === column.name && kind === column.kind);
    // The new values already use the ranges and names of the map's column.
    const values: ArrayLike<number> = own?.values.data ?? new Array<number>(extra.places.shape[1]).fill(none);
    const room = column.values.data instanceof Uint8Array ? new Uint8Array(sum) : new Uint16Array(sum);
    return { ...column, values: { data: put(column.values.data, values, 1, 1, room), shape: [sum] } } as Column;
  });
  const special = {
    data: put(all.points.special.data, extra.points.special.data, 1, 1, new Uint8Array(sum)),
    shape: [sum],
  };
  const own = extra.places.shape[1];
  const image = all.points.image && {
    data: put(
      all.points.image.data,
      extra.points.image?.data ?? new Array<number>(own).fill(-1),
      1,
      1,
      new Int16Array(sum),
    ),
    shape: [sum],
  };
  const box = all.points.box && {
    data: put(
      all.points.box.data,
      extra.points.box?.data ?? new Array<number>(4 * own).fill(NaN),
      4,
      1,
      new Float32Array(4 * sum),
    ),
    shape: [sum, 4],
  };
  const whole = {
    data: put(places, quantised(extra, wider, all.places), dims, heads, new Uint16Array(heads * sum * dims)),
    shape: [heads, sum, dims],
  };
  return {
    places: { ...all.places, queries: queries + more, places: whole, box: { ...all.places.box, data: wider } },
    points: { ...all.points, ...lists, queries: queries + more, texts, special, columns, image, box },
    norms: all.norms && {
      ...all.norms,
      queries: queries + more,
      values: {
        data: put(all.norms.values.data, reread(all.norms, extra, heads), 1, heads, new Uint8Array(heads * sum)),
        shape: [heads, sum],
      },
    },
  };
}

/** Add norms; lengths outside the known range become its longest or shortest. */
function reread(norms: MapNorms, extra: MapExtra, heads: number): Uint8Array {
  const own = extra.norms;
  const count = extra.places.shape[1];
  return Uint8Array.from({ length: heads * count }, (_, at) => {
    const place = 2 * Math.floor(at / count) + Number(at % count >= extra.points.queries);
    const length = own.low.data[place] + (own.values.data[at] / 255) * (own.high.data[place] - own.low.data[place]);
    const range = norms.high.data[place] - norms.low.data[place] || 1;
    return Math.round(255 * Math.min(1, Math.max(0, (length - norms.low.data[place]) / range)));
  });
}

/** Widen the boxes for the new points; write the places again for heads whose box grew. */
function widened(all: MapPlaces, extra: MapExtra): { places: Uint16Array; box: Float32Array } {
  const [heads, count, dims] = all.places.shape;
  const own = extra.places.shape[1];
  const box = all.box.data.slice();
  let places = all.places.data;
  for (let head = 0; head < heads; head++) {
    const [low, high] = [new Array<number>(dims).fill(0), new Array<number>(dims).fill(1)];
    for (let at = head * own * dims; at < (head + 1) * own * dims; at++) {
      const axis = at % dims;
      low[axis] = Math.min(low[axis], extra.places.data[at]);
      high[axis] = Math.max(high[axis], extra.places.data[at]);
    }
    for (let axis = 0; axis < dims; axis++) {
      if (low[axis] === 0 && high[axis] === 1) continue;
      if (places === all.places.data) places = places.slice();
      const at = head * 2 * dims + axis;
      const [from, range] = [all.box.data[at], all.box.data[at + dims] - all.box.data[at]];
      box[at] = from + low[axis] * range;
      box[at + dims] = from + high[axis] * range;
      for (let place = head * count * dims + axis; place < (head + 1) * count * dims; place += dims) {
        places[place] = Math.round((65535 * (places[place] / 65535 - low[axis])) / (high[axis] - low[axis]));
      }
    }
  }
  return { places, box };
}

function quantised(extra: MapExtra, box: Float32Array, all: MapPlaces): Uint16Array {
  const [, own, dims] = extra.places.shape;
  const old = all.box.data;
  return Uint16Array.from(extra.places.data, (value, at) => {
    const place = Math.floor(at / (own * dims)) * 2 * dims + (at % dims);
    const [from, to] = [old[place], old[place + dims]];
    const range = box[place + dims] - box[place];
    if (range === 0) return 0;
    return Math.round((65535 * (from + value * (to - from) - box[place])) / range);
  });
}
