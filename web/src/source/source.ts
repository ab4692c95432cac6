// Where the front end gets its data: a path goes in, one packet comes out.

export interface Source {
  get(path: string): Promise<ArrayBuffer>;
  /** Something that changes what there is; the same packet comes back. */
  ask(action: string, body: object): Promise<ArrayBuffer>;
  /** Whether anything may be asked for, or only what was stored. */
  live: boolean;
}
