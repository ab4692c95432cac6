// Which continuous colour scales are there? Those of ColorBrewer and matplotlib, by a few stops each.
import type { Rgb } from "./colour";

const STOPS = {
  YlGn: "ffffe5 f7fcb9 d9f0a3 addd8e 78c679 41ab5d 238443 006837 004529",
  PuRd: "f7f4f9 e7e1ef d4b9da c994c7 df65b0 e7298a ce1256 980043 67001f",
  Blues: "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b",
  Oranges: "fff5eb fee6ce fdd0a2 fdae6b fd8d3c f16913 d94801 a63603 7f2704",
  viridis: "440154 482475 414487 355f8d 2a788e 21918c 22a884 44bf70 7ad151 bddf26 fde725",
};

export type ScaleName = keyof typeof STOPS;

/** The part of a scale that can be seen on the page: not its palest end on white, not its darkest on black. */
const PART = { light: [0.24, 1], dark: [0.2, 0.76] } as const;
const PART_VIRIDIS = { light: [0, 0.95], dark: [0.14, 1] } as const;

export function scaleOf(name: ScaleName, dark: boolean, steps = 256): Rgb[] {
  const stops = STOPS[name].split(" ").map(rgb);
  const [from, to] = (name === "viridis" ? PART_VIRIDIS : PART)[dark ? "dark" : "light"];
  return Array.from({ length: steps }, (_, at) => {
    const place = (from + ((to - from) * at) / Math.max(1, steps - 1)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    return [0, 1, 2].map((part) =>
      Math.round(stops[low][part] + (stops[low + 1][part] - stops[low][part]) * (place - low)),
    ) as unknown as Rgb;
  });
}

export function rgb(hex: string): Rgb {
  const bare = hex.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(bare.slice(at, at + 2), 16)) as unknown as Rgb;
}
