// Which edits are in the list, what are they called, and which does the menu offer?
import { fitsInput, hasOn, withEdit, withoutEdit, type Edit } from "../lab/edits";
import { offersFor, type Offer, type Thing } from "../lab/offers";
import { quoted, sentence, type Names } from "../lab/sentences";
import { layerNamed, thingAt } from "../lab/thing";
import { tokensOfStream, type TokenInfo } from "../source/tokens";
import type { EditPick, InputInfo } from "../source/wire";
import type { Desk, Hover } from "./desk.svelte";
import { ordered } from "./tokens";
import { isolated } from "../draw/letters";

interface Menu {
  x: number;
  y: number;
  thing: Thing;
  /** What had the focus before, and the token that the keyboard was at. */
  focus: HTMLElement | null;
  hover: Hover | null;
}

export abstract class EditList {
  protected abstract readonly desk: Desk;
  private inputs: Record<number, InputInfo> = $state.raw({});
  menu: Menu | null = $state.raw(null);

  /** Whether there is a model that can be edited. */
  readonly able: boolean = $derived.by(() => this.desk.about.can_edit);
  /** The edits in the menu; texts of tokens may arrive while it is open. */
  readonly offers: Offer[] = $derived.by(() =>
    this.menu ? offersFor(this.menu.thing, this.namesFor(this.menu.thing.heads)) : [],
  );

  private set(edits: EditPick[]): void {
    this.desk.alter({ edits });
    if (this.desk.picks.labView === "before") this.desk.picks.labView = "after";
  }

  add(edit: Edit): void {
    this.set(withEdit(this.list, edit));
  }

  /** Add an edit or, if it is in force, take it out of the list. */
  toggle(edit: Edit): void {
    if (hasOn(this.list, edit)) this.desk.alter({ edits: withoutEdit(this.list, edit) });
    else this.add(edit);
  }

  remove(at: number): void {
    this.desk.alter({ edits: this.list.filter((_, place) => place !== at) });
  }

  clear(): void {
    this.desk.alter({ edits: [] });
  }

  switch(at: number, on: boolean): void {
    this.desk.alter({ edits: this.list.map((line, place) => (place === at ? { ...line, on } : line)) });
  }

  /** Change the number of an edit; one drag of its slider is one step of undo. */
  turn(at: number, edit: Edit): void {
    this.desk.sieve({ edits: this.list.map((line, place) => (place === at ? { ...line, edit } : line)) });
  }

  get list(): EditPick[] {
    return $state.snapshot(this.desk.picks.edits);
  }

  fits(edit: Edit): boolean {
    return fitsInput(edit, this.desk.picks.input);
  }

  // Names ---------------------------------------------------------------------------------------

  protected fetchInputs(): void {
    const { input, edits } = this.desk.picks;
    if (edits.length === 0 && !this.menu && !this.desk.needs("edits")) return;
    const numbers = ordered([input, ...edits.flatMap(({ edit }) => (edit as Edit).inputs ?? [])]);
    for (const number of numbers)
      if (this.desk.about.inputs.some((line) => line.number === number))
        this.desk.store.ask("input", number).then(
          (info) => (this.inputs = { ...this.inputs, [number]: info }),
          () => {},
        );
  }

  /** Name the stream that heads look from or look at. */
  streamOf(heads: readonly string[], side: "query" | "key"): string | undefined {
    const layer = layerNamed(this.desk.about, heads[0] ?? "all");
    return side === "query" ? layer?.queries : layer?.keys;
  }

  /** Get the tokens that heads look from or look at, of an input whose tokens are known. */
  tokensOf(heads: readonly string[], side: "query" | "key", input = this.desk.picks.input): TokenInfo[] {
    const stream = this.streamOf(heads, side);
    const info = this.inputs[input] ?? (input === this.desk.picks.input ? this.desk.one.ready?.input : undefined);
    return tokensOfStream(info, stream);
  }

  namesFor(heads: readonly string[], input = this.desk.picks.input): Names {
    return {
      token: (side, position) => {
        const token = this.tokensOf(heads, side, input)[position];
        if (token && token.row >= 0) return `the patch in row ${token.row}, column ${token.column}`;
        const text = token?.text.replace(/^·/, "") ?? "";
        return text.trim() === "" ? `token ${position}` : `“${isolated(text)}” (${position})`;
      },
      input: (number) => quoted(this.desk.about.inputs.find((line) => line.number === number)?.label ?? `${number}`),
    };
  }

  sentenceOf(edit: Edit): string {
    return sentence(edit, this.namesFor(edit.heads, edit.inputs?.[0]));
  }

  // Menu ----------------------------------------------------------------------------------------

  /** Open the menu of edits for what is at an element; return whether there is something to edit. */
  openMenu(element: Element | null, { x, y, byKey = false }: { x: number; y: number; byKey?: boolean }): boolean {
    const thing = this.able ? thingAt(this.desk, element) : null;
    if (!thing) return false;
    this.menu = {
      x,
      y,
      thing,
      focus: document.activeElement as HTMLElement | null,
      hover: byKey ? this.desk.hover : null,
    };
    return true;
  }

  closeMenu(): void {
    const { menu } = this;
    this.menu = null;
    menu?.focus?.focus({ preventScroll: true });
    if (menu?.hover) this.desk.hover = menu.hover;
  }
}
