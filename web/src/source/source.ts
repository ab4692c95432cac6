// Where does the front end get its data? Each path gives one packet.

export interface Source {
  /** Get a packet; a host that can drop a request does so when `signal` says it. */
  get(path: string, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Ask for an action, such as adding a text; its answer is a packet too. */
  ask(action: string, body: object): Promise<ArrayBuffer>;
  /** Whether everything can be asked for, or only what was stored. */
  live: boolean;
  /** The work of this page on a server that several people use. */
  queue?: PageQueue;
}

export interface PageQueue {
  /** Get the packet of what waits or runs for this page. */
  lines(): Promise<ArrayBuffer>;
  /** Give up a piece of work. */
  leave(ticket: number): Promise<ArrayBuffer>;
  /** Hear when requests take long, and when none does any more. */
  whenSlow(hear: (slow: boolean) => void): void;
}
