// Long work, a slice at a time. Not by frames: a slow screen would hold it up, and nobody sees half of it anyway.

/** How long a slice may take (ms), so that the page still answers. */
const SLICE = 24;
/** A first slice for work that is short, or where nothing is on screen yet: there is nothing to answer to. */
export const AT_ONCE = 400;
/** No first slice: what is on the page already is shown before the work begins. */
export const AFTER_FRAME = 0;

export class Slices {
  private now: Iterator<unknown> | null = null;
  private then = (): void => {};
  private readonly bell = new MessageChannel();
  private frame = 0;

  constructor() {
    this.bell.port1.onmessage = () => this.slice();
  }

  /** `then` is called in the slice that ends the work. The first slice may be longer, or come after the next frame. */
  run(work: Iterator<unknown>, then: () => void, first = SLICE): void {
    this.stop();
    this.then = then;
    this.now = work;
    if (first === AFTER_FRAME) this.frame = requestAnimationFrame(() => this.bell.port2.postMessage(null));
    else this.slice(first);
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
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
