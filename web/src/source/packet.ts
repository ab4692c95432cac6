// How do the bytes of a packet become an object? Its arrays are views into the same bytes.
import { ARRAYS, type Grid } from "./wire";

/** The error that a packet contains in place of an answer. */
export class AtlasFailure extends Error {}

interface Place {
  at: number;
  type: keyof typeof ARRAYS;
  shape: number[];
}

function isPlace(value: object): value is Place {
  return "at" in value && "type" in value && "shape" in value && Array.isArray(value.shape);
}

/** Read a packet: uint32 header length · JSON header · zeros up to 8 · buffers, each at a multiple of 8. */
export function decode<T>(bytes: ArrayBuffer): T {
  if (bytes.byteLength < 4) throw new AtlasFailure("an answer is empty; reload the page");
  const length = new DataView(bytes).getUint32(0, true);
  if (4 + length > bytes.byteLength) throw new AtlasFailure("an answer is cut short; reload the page");
  const header: unknown = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const start = Math.ceil((4 + length) / 8) * 8;
  const whole = filled(header, bytes, start) as T;
  const keys = Object.keys(whole as object);
  if (keys.length === 1 && keys[0] === "error") throw new AtlasFailure((whole as { error: string }).error);
  return whole;
}

function filled(value: unknown, bytes: ArrayBuffer, start: number): unknown {
  if (Array.isArray(value)) {
    // Token lists contain no arrays; they are read too, since a header is small.
    return value.map((item) => filled(item, bytes, start));
  }
  if (typeof value !== "object" || value === null) return value;
  if (isPlace(value)) return grid(value, bytes, start);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, bytes, start)]));
}

function grid(place: Place, bytes: ArrayBuffer, start: number): Grid<unknown> {
  const size = place.shape.reduce((product, length) => product * length, 1);
  const kind = ARRAYS[place.type];
  if (!kind) throw new AtlasFailure(`an answer has an array of the unknown type "${place.type}"; reload the page`);
  return { data: new kind(bytes, start + place.at, size), shape: place.shape };
}
