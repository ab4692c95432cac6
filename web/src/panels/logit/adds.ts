// What do heads and tokens add to a logit? Sums and colours of one packet.
import type { LogitAdds } from "../../source/wire";

/** Get what each head adds: the sum over its tokens. */
export function byHead({ adds }: LogitAdds): Float32Array {
  const [heads, keys] = adds.shape;
  return Float32Array.from({ length: heads }, (_, head) => {
    let sum = 0;
    for (let at = head * keys; at < (head + 1) * keys; at++) sum += adds.data[at];
    return sum;
  });
}

/** Get what each token of a stream adds, through one head or through all (-1). */
export function byToken({ adds, keys }: LogitAdds, stream: string, head = -1): Float32Array {
  const [heads, most] = adds.shape;
  const out = new Float32Array(most);
  for (let row = 0; row < heads; row++) {
    if (keys[row] !== stream || (head >= 0 && row !== head)) continue;
    for (let at = 0; at < most; at++) out[at] += adds.data[row * most + at];
  }
  return out;
}

export const largest = (numbers: Float32Array): number =>
  numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);

/** Write an amount with its sign, as in +0.42. */
export const amount = (value: number): string =>
  `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(Math.abs(value) < 0.1 ? 3 : 2)}`;
