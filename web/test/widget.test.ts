// Does a notebook cell keep to the limit of waiting actions, and go on when they are answered?
import { expect, test } from "vitest";
import { widgetSource, type Model } from "../src/source/widget";
import { MOST_WAITING } from "../src/source/wire";

test("a cell refuses one action more than may wait, and takes it once another is answered", async () => {
  const sent: { id: string }[] = [];
  let hear: (message: object, buffers: ArrayBuffer[]) => void = () => {};
  const model = {
    send: (message: unknown) => sent.push(message as { id: string }),
    on: (_: string, heard: never) => (hear = heard),
    off: () => {},
  } as unknown as Model;
  const source = widgetSource(model);
  const waiting = Array.from({ length: MOST_WAITING }, () => source.ask!("edit", {}));
  await expect(source.ask!("edit", {})).rejects.toThrow(`${MOST_WAITING} pieces of your work wait already`);
  expect(sent.length).toBe(MOST_WAITING);
  for (const { id } of sent) hear({ kind: "answer", id }, [new ArrayBuffer(1)]);
  await Promise.all(waiting);
  void source.ask!("edit", {});
  expect(sent.length).toBe(MOST_WAITING + 1);
});
