// Long work, a slice at a time. Not by frames: a slow screen would hold it up, and nobody sees half of it anyway.

/** How long a slice may take (ms), so that the page still answers. */
const SLICE = 24;
/** A first slice for work that is short, or where nothing is on screen yet: there is nothing to answer to. */
export const AT_ONCE = 400;

export class Slices {
  private now: Iterator<unknown> | null = null;
  private then = (): void => {};
  private readonly bell = new MessageChannel();

  constructor() {
    this.bell.port1.onmessage = () => this.slice();
  }

  /** Begins at once; `then` is called in the slice that ends the work. The first slice may be longer. */
  run(work: Iterator<unknown>, then: () => void, first = SLICE): void {
    this.then = then;
    this.now = work;
    this.slice(first);
  }

  stop(): void {
    this.now = null;
  }

  private slice(long = SLICE): void {
    const work = this.now;
    const end = performance.now() + long;
    while (work !== null && this.now === work) {
      if (work.next().done) {
        this.now = null;
        this.then();
      } else if (performance.now() >= end) return this.bell.port2.postMessage(null);
    }
  }
}
