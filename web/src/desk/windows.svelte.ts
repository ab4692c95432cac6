// Which part of a long input is loaded for lines and weights? A window of queries and one of keys, of one layer.
import { inside, startWithin, windowAround, WIDE, type Window } from "../tiles/window";
import { tokensOfStream } from "../source/tokens";
import type { InputInfo } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { sentence } from "./pane.svelte";
import { placeOf, type Scene } from "./store";

const SAVED = "lines of a long input need a server; open the atlas with attention-atlas serve";

export class Windows {
  info: InputInfo | undefined = $state.raw();
  private loaded: Scene | undefined = $state.raw();
  /** Why the input, or the window, cannot be had. */
  noInput = $state("");
  failure = $state("");
  /** Stays where it is while the picked token is inside, so that a click does not move what was clicked. */
  private held: Window = { rows: 0, columns: 0 };

  readonly counts = $derived.by(() => {
    const count = (stream = "") => (this.here() ? tokensOfStream(this.info, stream).length : 0);
    return { rows: count(this.desk.layer?.queries), columns: count(this.desk.layer?.keys) };
  });

  /** Where the windows start; null while the input is loading. */
  readonly at: Window | null = $derived.by(() => {
    const { rows, columns } = this.counts;
    if (rows === 0 || columns === 0) return null;
    const { window, token, key } = this.desk.picks;
    if (window) this.held = { rows: window[0], columns: window[1] };
    else if (token && !inside(this.held, token, key)) this.held = windowAround(token, key, rows, columns);
    const { held } = this;
    const fits = { rows: startWithin(held.rows, rows), columns: startWithin(held.columns, columns) };
    return (this.held = fits.rows === held.rows && fits.columns === held.columns ? held : fits);
  });

  /** The last window that was loaded, of the picked input and layer. */
  readonly scene: Scene | undefined = $derived.by(() => {
    const { loaded, desk } = this;
    if (!loaded || !this.here() || loaded.input !== this.info) return undefined;
    return loaded.tower.name === desk.tower.name && placeOf(loaded, desk.place.layer) >= 0 ? loaded : undefined;
  });

  /** Create while a component is initialised; `input` returns null while there is no long input. */
  constructor(
    private readonly desk: Desk,
    private readonly input: () => number | null,
    private readonly needed: () => boolean,
  ) {
    $effect(() => this.loadInput());
    $effect(() => this.loadWindow());
  }

  /** Move both windows by some tokens. */
  move(by: number): void {
    if (this.at) this.desk.picks.window = [this.within("rows", by), this.within("columns", by)];
  }

  private within(axis: keyof Window, by: number): number {
    return startWithin((this.at?.[axis] ?? 0) + by, this.counts[axis]);
  }

  private here(): boolean {
    return this.info !== undefined && this.info.number === this.input();
  }

  private loadInput(): void {
    const number = this.input();
    this.noInput = "";
    if (number === null) return void (this.info = this.loaded = undefined);
    this.desk.store.ask("input", number).then(
      (info) => number === this.input() && (this.info = info),
      (error: unknown) => number === this.input() && (this.noInput = sentence(error)),
    );
  }

  private loadWindow(): void {
    const { at, counts } = this;
    const number = this.input();
    const { tower, place } = this.desk;
    if (number === null || at === null || !this.needed()) return;
    this.failure = "";
    const span = (axis: keyof Window) => `${at[axis]}-${Math.min(counts[axis], at[axis] + WIDE) - 1}`;
    this.desk.store.scene(number, tower, place.layer, span("rows"), span("columns")).then(
      (scene) => at === this.at && (this.loaded = scene),
      (error: unknown) => at === this.at && (this.failure = this.desk.source.live ? sentence(error) : SAVED),
    );
  }
}
