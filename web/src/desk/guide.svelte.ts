// Who leads a first visit? The story of the demo, step by step; elsewhere the hints of the tab.
import type { StoryStep } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { fromHash, START } from "./picks";
import type { Hint } from "./tab";

const HINTS = "attention-atlas-hints";
const STORY = "attention-atlas-story";

/** Read what this browser keeps; without storage every visit is like one that has seen the hints. */
function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return "seen";
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Without storage the story starts again on the next visit.
  }
}

export class GuideDesk {
  readonly steps: readonly StoryStep[];
  /** The step that is shown, or at which the story was left. */
  at = $state(0);
  /** Whether the story is told: on screen, unless the person went to another tab. */
  telling = $state(false);
  /** Whether the hints of the tab are shown, and which one of them. */
  hinting = $state(false);
  hint = $state(0);

  /** `fresh`: the page was opened without a link to one of its states. */
  constructor(
    private readonly desk: Desk,
    fresh: boolean,
  ) {
    this.steps = desk.chrome === "page" ? (desk.about.story ?? []) : [];
    this.hinting = desk.chrome === "page" && this.steps.length === 0 && kept(HINTS) !== "seen";
    if (this.steps.length === 0) return;
    const [, at, telling] = /^(\d+) (open|left)$/.exec(kept(STORY) ?? "") ?? [];
    this.at = Math.min(Number(at ?? 0), this.steps.length - 1);
    this.telling = telling === undefined ? fresh : telling === "open";
    if (this.telling && fresh) this.go(this.at);
  }

  /** The hints of the view on screen. */
  get hints(): readonly Hint[] {
    return (this.desk.tab.hints ?? []).filter((hint) => hint.applies?.(this.desk) ?? true);
  }

  /** The step on screen; on another tab than its own there is none, since its words would not fit. */
  get step(): StoryStep | undefined {
    const step = this.telling ? this.steps[this.at] : undefined;
    return step && (fromHash(step.picks).tab ?? START.tab) === this.desk.picks.tab ? step : undefined;
  }

  /** Show a step: the page takes its state; theme and colours stay. */
  go(at: number): void {
    const step = this.steps[at];
    if (!step) return;
    [this.at, this.telling] = [at, true];
    const { theme, palette } = this.desk.picks;
    // The names of heads tell their tower and layer.
    const { tower: _tower, layer: _layer, ...start } = START;
    this.desk.setPicks({ ...start, theme, palette, ...fromHash(step.picks) });
    this.remember();
  }

  /** Go to the next step, leave after the last one, or resume the story where it was left. */
  next(): void {
    if (!this.step) this.go(this.at);
    else if (this.at + 1 < this.steps.length) this.go(this.at + 1);
    else {
      this.at = 0;
      this.leave();
    }
  }

  back(): void {
    this.go(this.step ? Math.max(0, this.at - 1) : this.at);
  }

  /** Leave the story, or close the hints for good. The page stays as it is. */
  leave(): void {
    if (this.hinting) keep(HINTS, "seen");
    [this.hinting, this.telling] = [false, false];
    if (this.steps.length > 0) this.remember();
  }

  /** Show the next hint; after the last one they are closed. */
  nextHint(): void {
    if (this.hint + 1 < this.hints.length) this.hint += 1;
    else this.leave();
  }

  private remember(): void {
    keep(STORY, `${this.at} ${this.telling ? "open" : "left"}`);
  }
}
