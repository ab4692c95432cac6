// How is long work done without blocking the page? In slices. Not one for each frame: a slow screen would delay it.

/** The longest slice (ms), so that the page still reacts. */
const SLICE = 24;
/** A longer first slice (ms), for short work or while nothing is on screen yet. */
export const AT_ONCE = 400;
/** No first slice: the page is shown before the work begins. */
export const AFTER_FRAME = 0;

export class Slices {
  private now: Iterator<unknown> | null = null;
  private then = (): void => {};
  private readonly bell = new MessageChannel();
  private frame = 0;

  constructor() {
    this.bell.port1.onmessage = () => this.slice();
  }

  /** Start the work; `then` is called in the last slice. The first slice may be longer, or wait for the next frame. */
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
