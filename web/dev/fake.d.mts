export function pack(header: unknown): Buffer;
export class Fake {
  constructor(options?: Record<string, unknown>);
  answer(path: string): Buffer;
}
