// Where does the front end get its data? Each path gives one packet.

export interface Source {
  /** Get a packet; a host that can drop a request does so when `signal` says it. */
  get(path: string, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Ask for an action, such as adding a text; its answer is a packet too. */
  ask(action: string, body: object): Promise<ArrayBuffer>;
  /** Whether everything can be asked for, or only what was stored. */
  live: boolean;
}
