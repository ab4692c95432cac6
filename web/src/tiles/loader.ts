// Which tiles are kept, which are asked for, and which requests are dropped?

interface Request {
  name: string;
  stop: AbortController;
}

/** Requests at once; more would delay the tile that is looked at. */
const AT_ONCE = 3;

export class Loader<T> {
  /** The least recently wanted first. */
  private kept = new Map<string, T>();
  private running = new Map<string, Request>();
  private wanted: string[] = [];
  private failed = new Map<string, unknown>();

  /** `ask` loads a tile and may be stopped; `told` is called whenever a tile arrives or cannot be had. */
  constructor(
    private readonly ask: (name: string, signal: AbortSignal) => Promise<T>,
    private readonly told: () => void,
    private readonly most: number,
  ) {}

  get(name: string): T | undefined {
    return this.kept.get(name);
  }

  /** Why a wanted tile cannot be had; undefined if all are there or on their way. */
  get failure(): unknown {
    const name = this.wanted.find((wanted) => this.failed.has(wanted));
    return name === undefined ? undefined : this.failed.get(name);
  }

  /** Number of wanted tiles that are not there yet and did not fail. */
  get missing(): number {
    return this.wanted.filter((name) => !this.kept.has(name) && !this.failed.has(name)).length;
  }

  /** Ask for tiles, the most urgent first; requests for other tiles are dropped. */
  want(names: string[]): void {
    this.wanted = names;
    for (const [name, request] of this.running) {
      if (names.includes(name)) continue;
      this.running.delete(name);
      request.stop.abort();
    }
    for (const name of names) this.touch(name);
    this.next();
  }

  /** Ask again for tiles that could not be had. */
  retry(): void {
    this.failed.clear();
    this.next();
  }

  close(): void {
    this.want([]);
    this.kept.clear();
  }

  private touch(name: string): void {
    const tile = this.kept.get(name);
    if (tile === undefined) return;
    this.kept.delete(name);
    this.kept.set(name, tile);
  }

  private next(): void {
    for (const name of this.wanted) {
      if (this.running.size >= AT_ONCE) return;
      if (!this.kept.has(name) && !this.running.has(name) && !this.failed.has(name)) this.start(name);
    }
  }

  private start(name: string): void {
    const request = { name, stop: new AbortController() };
    this.running.set(name, request);
    const ended = (act: () => void) => {
      // A dropped request may still answer, and the same tile may have been asked for again.
      if (this.running.get(name) !== request) return;
      this.running.delete(name);
      act();
      this.next();
      this.told();
    };
    this.ask(name, request.stop.signal).then(
      (tile) => ended(() => this.keep(name, tile)),
      (error: unknown) => ended(() => this.failed.set(name, error)),
    );
  }

  private keep(name: string, tile: T): void {
    this.kept.set(name, tile);
    for (const old of this.kept.keys()) {
      if (this.kept.size <= this.most) return;
      if (!this.wanted.includes(old)) this.kept.delete(old);
    }
  }
}
