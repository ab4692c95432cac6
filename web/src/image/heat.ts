// Which colour does the overlay have on each patch?
import { mix, NEGATIVE, POSITIVE, type Rgb } from "../draw/colour";
import { rgb } from "../draw/scales";

/** Get the colour of a strength: dark for little attention, bright for most; visible on light and dark pictures. */
const STOPS = ["1b0c42", "781c6d", "cf4446", "fb9a06", "fcffa4"].map(rgb);

export function heatColour(strength: number): Rgb {
  const place = Math.min(1, Math.max(0, strength)) * (STOPS.length - 1);
  const low = Math.min(STOPS.length - 2, Math.floor(place));
  return mix(STOPS[low], STOPS[low + 1], place - low);
}

/** The opacity of the overlay. The colours of the picture below are reduced (`PALE`), so that colour means weight. */
export const heatAlpha = (strength: number): number => 0.5 + 0.12 * Math.min(1, Math.max(0, strength));
export const PALE = 0.6;

/** Get the strength of a weight: √ of its share of the largest, so that small weights can be distinguished. */
export const strengthOf = (weight: number, most: number): number =>
  most > 0 ? Math.sqrt(Math.min(1, Math.max(0, weight / most))) : 0;

/** Get the largest weight of the tokens that have a place, or the largest size of a change. */
export function mostOf(weights: Float32Array, placed: readonly unknown[]): number {
  let most = 0;
  weights.forEach((weight, at) => {
    if (placed[at] && Math.abs(weight) > most) most = Math.abs(weight);
  });
  return most;
}

/** The weights of a token with all others; or, if `signed`, how they changed. */
export interface Shades {
  weights: Float32Array;
  most: number;
  signed: boolean;
}

/** Get the colour of a weight and its opacity on a picture: of a change blue for more, orange for less. */
export function shade(weight: number, { most, signed }: Shades): { colour: Rgb; alpha: number; strength: number } {
  const strength = strengthOf(Math.abs(weight), most);
  if (!signed) return { colour: heatColour(strength), alpha: heatAlpha(strength), strength };
  return { colour: weight < 0 ? NEGATIVE : POSITIVE, alpha: 0.05 + 0.75 * strength, strength };
}
