// What does the server do for this page, and what waits? Asked only while a request takes long.
import { decode } from "../source/packet";
import type { Source } from "../source/source";
import type { Queued, QueueLine } from "../source/wire";

const POLL = 700;

export class QueueDesk {
  lines: QueueLine[] = $state.raw([]);
  private slow = false;
  private asking = false;

  constructor(private readonly source: Source) {
    source.queue?.whenSlow((slow) => {
      this.slow = slow;
      if (slow) void this.follow();
      else this.lines = [];
    });
  }

  /** Get the line of a piece of work; undefined if it neither waits nor runs, or was answered soon. */
  of(what: string): QueueLine | undefined {
    return this.lines.find((line) => line.what === what);
  }

  /** Give up a piece of work and all others of its sort. */
  async leave(what: string): Promise<void> {
    const tickets = this.lines.filter((line) => line.what === what).map(({ ticket }) => ticket);
    this.lines = this.lines.filter((line) => line.what !== what);
    await Promise.all(tickets.map((ticket) => this.source.queue?.leave(ticket))).catch(() => {});
  }

  private async follow(): Promise<void> {
    if (this.asking || !this.source.queue) return;
    this.asking = true;
    while (this.slow) {
      // A server that does not answer is told of by the request itself.
      const lines = await this.source.queue.lines().then(
        (bytes) => decode<Queued>(bytes).lines,
        () => [],
      );
      if (this.slow) this.lines = lines;
      await new Promise((done) => setTimeout(done, POLL));
    }
    this.asking = false;
  }
}
