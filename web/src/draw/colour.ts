// Which colours have heads, weights and signed numbers? Colours are made in OKLCH, where equal steps look equal.

export type Rgb = readonly [number, number, number];

/** Convert OKLCH to sRGB bytes; chroma is lowered until the screen can show the colour. */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  for (let c = chroma; ; c -= 0.01) {
    const rgb = linear(lightness, Math.max(0, c), (hue * Math.PI) / 180);
    if (c <= 0 || rgb.every((x) => x >= -0.001 && x <= 1.001)) return rgb.map(gamma) as unknown as Rgb;
  }
}

function linear(lightness: number, chroma: number, angle: number): number[] {
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function gamma(x: number): number {
  const clear = Math.min(1, Math.max(0, x));
  const bent = clear <= 0.0031308 ? 12.92 * clear : 1.055 * clear ** (1 / 2.4) - 0.055;
  return Math.round(255 * bent);
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
export const hex = (rgb: Rgb): string => `#${rgb.map((x) => x.toString(16).padStart(2, "0")).join("")}`;

/** The lightness of lines, so that they can be seen on the page. */
const LEVELS = { light: [0.6, 0.47, 0.68], dark: [0.74, 0.62, 0.84] } as const;

/**
 * Make one colour for each head: hues evenly around the circle, and neighbours of different lightness,
 * so that colour-blind people see two colours too.
 */
export function headColours(count: number, dark: boolean): Rgb[] {
  const levels = LEVELS[dark ? "dark" : "light"];
  return Array.from({ length: count }, (_, head) =>
    oklch(levels[head % levels.length], 0.16, 255 + (360 * head) / Math.max(1, count)),
  );
}

export const POSITIVE: Rgb = [43, 123, 186];
export const NEGATIVE: Rgb = [225, 129, 44];
export const PAPER = { light: [252, 252, 253], dark: [20, 22, 26] } as const;

export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const part = Math.min(1, Math.max(0, share));
  return [0, 1, 2].map((at) => Math.round(from[at] + (to[at] - from[at]) * part)) as unknown as Rgb;
}

/** Get the colour of a weight: that of its head, or by its sign if the head has none. */
export const tintOf = (colour: Rgb | null | undefined, weight: number): Rgb =>
  colour ?? (weight < 0 ? NEGATIVE : POSITIVE);

/** Get the colour of a signed number: blue above zero, orange below, paler near zero, full at `most`. */
export function signed(value: number, most: number, dark: boolean): Rgb {
  const paper = PAPER[dark ? "dark" : "light"];
  return mix(paper, value >= 0 ? POSITIVE : NEGATIVE, most > 0 ? Math.abs(value) / most : 0);
}

/** Choose black or white for text on a ground: whichever differs more, which is always at least 4.5 : 1. */
export function inkOn(ground: Rgb): string {
  const [r, g, b] = ground.map((x) => (x <= 10 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b; // as the contrast of web pages is defined
  return (light + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
}

/** Get the opacity of a line: weight^¾, so that even attention over many tokens can still be seen. */
export const opacity = (weight: number): number => bent(Math.min(1, Math.abs(weight)));
/** Compute x^¾, several times as fast as `**`. */
export const bent = (x: number): number => Math.sqrt(x * Math.sqrt(x));

/** Make the 256 colours of the heat scale; √ so that small weights can be distinguished. */
export function heatScale(dark: boolean): Rgb[] {
  return Array.from({ length: 256 }, (_, at) => {
    const x = at / 255;
    return dark
      ? oklch(0.2 + 0.72 * x, 0.02 + 0.16 * Math.sin(Math.PI * Math.min(1, x * 0.9)), 270 - 170 * x)
      : oklch(0.985 - 0.63 * x, 0.01 + 0.15 * Math.sin(Math.PI * Math.min(1, x * 0.8)), 110 + 160 * x);
  });
}
/** Make the 256 colours of numbers with signs; 128 is zero. √ as in the heat scale. */
export const signedScale = (dark: boolean): Rgb[] =>
  Array.from({ length: 256 }, (_, at) => {
    const x = Math.max(-1, (at - 128) / 127);
    return mix(PAPER[dark ? "dark" : "light"], x < 0 ? NEGATIVE : POSITIVE, Math.abs(x));
  });
export const heatPlace = (weight: number): number => Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, weight))));
