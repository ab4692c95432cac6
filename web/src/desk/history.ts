// How do undo and redo work? A list of past states and a list of undone states.

export class History<T> {
  private past: T[] = [];
  private undone: T[] = [];

  /** Keep the state before a change. */
  keep(state: T): void {
    if (JSON.stringify(state) === JSON.stringify(this.past.at(-1))) return;
    this.past.push(state);
    if (this.past.length > 200) this.past.shift();
    this.undone = [];
  }

  back(now: T): T | undefined {
    const state = this.past.pop();
    if (state !== undefined) this.undone.push(now);
    return state;
  }

  forth(now: T): T | undefined {
    const state = this.undone.pop();
    if (state !== undefined) this.past.push(now);
    return state;
  }

  get canBack(): boolean {
    return this.past.length > 0;
  }
  get canForth(): boolean {
    return this.undone.length > 0;
  }
}
