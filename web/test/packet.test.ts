import { expect, test } from "vitest";
import { decode } from "../src/source/packet";
import { Fake, pack } from "../dev/fake.mjs";
import type { Edges } from "../src/source/wire";

const bytes = (buffer: Buffer): ArrayBuffer =>
  buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.length) as ArrayBuffer;

test("arrays come back as numbers with their shape, wherever they stand", () => {
  const packet = pack({
    name: "é",
    a: { grid: Uint16Array.of(1, 2, 3), type: "u2", shape: [3] },
    inner: [{ b: { grid: Float32Array.of(0.5, -1), type: "f4", shape: [1, 2] } }],
  });
  const made = decode<{
    name: string;
    a: { data: Uint16Array };
    inner: { b: { data: Float32Array; shape: number[] } }[];
  }>(bytes(packet));
  expect(made.name).toBe("é");
  expect([...made.a.data]).toEqual([1, 2, 3]);
  expect([...made.inner[0].b.data]).toEqual([0.5, -1]);
  expect(made.inner[0].b.shape).toEqual([1, 2]);
});

test("a failure becomes an error with its sentence", () => {
  expect(() => decode(bytes(pack({ error: "no head is named '5.1'" })))).toThrow("no head is named '5.1'");
});

test("an answer cut short says so", () => {
  expect(() => decode(new ArrayBuffer(2))).toThrow("empty");
  expect(() => decode(Uint8Array.of(200, 0, 0, 0, 1).buffer)).toThrow("cut short");
});

test("made-up edges decode to rows that sum to one", () => {
  const edges = decode<Edges>(bytes(new Fake({ tokens: 5, layers: 1, heads: 2 }).answer("edges/0/decoder")));
  const weights = edges.weight.data as Float32Array;
  for (let row = 0; row < 10; row++)
    expect(weights.subarray(row * 5, row * 5 + 5).reduce((a, b) => a + b)).toBeCloseTo(1, 5);
});
