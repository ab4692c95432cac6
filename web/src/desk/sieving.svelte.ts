// What is left out of the view or edited? Hidden tokens, filters and edits, with undo.
import { History } from "./history";
import type { Chosen } from "./picks";
import type { Tab } from "./tab";
import { ordered } from "./tokens";

/** The picks that undo restores; the tabs name them. */
type Sieved = Partial<Chosen>;

export abstract class Sieving {
  abstract picks: Chosen;
  abstract readonly tabs: readonly Tab[];
  canUndo = $state(false);
  canRedo = $state(false);
  private history = new History<Sieved>();
  private lastKept = 0;
  private lastWhat = "";

  isHidden(stream: string, positions: number[]): boolean {
    const hidden = this.picks.hidden[stream] ?? [];
    return positions.every((position) => hidden.includes(position));
  }

  toggleHidden(stream: string, positions: number[]): void {
    const now = this.picks.hidden[stream] ?? [];
    const gone = this.isHidden(stream, positions);
    this.setHidden(stream, gone ? now.filter((position) => !positions.includes(position)) : [...now, ...positions]);
  }

  setHidden(stream: string, positions: number[]): void {
    this.keep();
    const hidden = { ...this.picks.hidden, [stream]: ordered(positions) };
    if (positions.length === 0) delete hidden[stream];
    this.picks.hidden = hidden;
  }

  showAll(): void {
    this.keep();
    this.picks.hidden = {};
  }

  /** Change filters; undo reverts it, and one drag of a slider is one change. */
  sieve(change: Sieved): void {
    const what = Object.keys(change).join();
    if (Date.now() - this.lastKept > 600 || what !== this.lastWhat) this.keep();
    [this.lastKept, this.lastWhat] = [Date.now(), what];
    Object.assign(this.picks, change);
  }

  /** Make a change that is a step of undo of its own. */
  alter(change: Sieved): void {
    this.keep();
    this.lastWhat = "";
    Object.assign(this.picks, change);
  }

  undo(): void {
    this.restore(this.history.back(this.sieved()));
  }

  redo(): void {
    this.restore(this.history.forth(this.sieved()));
  }

  private sieved(): Sieved {
    const picks: Chosen = $state.snapshot(this.picks);
    return Object.fromEntries(this.tabs.flatMap((tab) => tab.undo ?? []).map((name) => [name, picks[name]]));
  }

  private keep(): void {
    this.history.keep(this.sieved());
    this.tell();
  }

  private restore(state: Sieved | undefined): void {
    if (state) Object.assign(this.picks, state);
    this.tell();
  }

  private tell(): void {
    this.canUndo = this.history.canBack;
    this.canRedo = this.history.canForth;
  }
}
