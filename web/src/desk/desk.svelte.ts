// The desk: the picks that all panels share, and every way to change them.
import type { Source } from "../source/source";
import type { About, LayerInfo, Picks, TokenPick, TowerInfo } from "../source/wire";
import { headColours, type Rgb } from "../draw/colour";
import type { Unit } from "../weights/units";
import { fitting, headName, headPlace, type HeadPlace } from "./picks";
import { ImageDesk } from "./image.svelte";
import { MapDesk } from "./map.svelte";
import { Pane } from "./pane.svelte";
import { Sieving } from "./sieving.svelte";
import { Store } from "./store";

export type Chrome = "page" | "cell" | "file";

/** A token under the cursor; `pane` tells two inputs apart. */
export interface Hover extends TokenPick {
  pane: number;
}

export class Desk extends Sieving {
  readonly store: Store;
  /** What there is; grows when a map is computed or a text added. */
  about: About = $state.raw() as About;
  picks: Picks = $state() as Picks;
  hover: Hover | null = $state(null);
  /** A head under the cursor in the model view or among the squares. */
  hoverHead: string | null = $state(null);
  systemDark = $state(false);
  /** Mass drawn by the panel on screen, and what is worth saying about its numbers. */
  drawn: { drawn: number; total: number } | null = $state.raw(null);
  note = $state("");
  /** Share of their strength that lines are drawn at; less than 1 where very many cross. */
  strength = $state(1);
  /** Number of the tokens on screen, for the top-k slider. */
  width = $state(0);
  /** The panel on screen as a figure. */
  figure: (() => string) | null = $state.raw(null);
  /** All tokens in view, however small. */
  fit = $state(false);
  /** The page's state as tests and hosts read it. */
  state: "opening" | "drawing" | "ready" | "error" = $state("opening");
  failure = $state("");

  readonly dark = $derived.by(() => (this.picks.theme === "auto" ? this.systemDark : this.picks.theme === "dark"));
  readonly tower: TowerInfo = $derived.by(
    () => this.about.towers.find((one) => one.name === this.picks.tower) ?? this.about.towers[0],
  );
  readonly layer: LayerInfo | undefined = $derived.by(
    () => this.tower?.layers.find((one) => one.layer === this.picks.layer) ?? this.tower?.layers[0],
  );
  /** Numbers of the picked heads within the layer. */
  readonly heads: number[] = $derived.by(() => this.picks.heads.map((name) => headPlace(this.about, name)?.head ?? 0));
  readonly focus: string = $derived.by(() => this.picks.heads[0] ?? this.nameOf(0));
  readonly colours: Rgb[] = $derived.by(() => headColours(this.layer?.heads ?? 1, this.dark));

  /** The picked input, and the one it is compared with. */
  one!: Pane;
  two!: Pane;
  map!: MapDesk;
  image!: ImageDesk;

  private beforeSolo: string[] | null = null;

  constructor(
    readonly source: Source,
    about: About,
    readonly chrome: Chrome,
    picks: Partial<Picks>,
  ) {
    super();
    this.about = about;
    this.store = new Store(source);
    this.picks = fitting(picks, about);
  }

  /** Call while a component starts: from here on the inputs' data follow the picks. */
  open(): void {
    this.one = new Pane(this, () => this.picks.input);
    this.two = new Pane(this, () => this.picks.other);
    this.map = new MapDesk(this);
    this.image = new ImageDesk(this);
  }

  /** The token, or the word around it, as it stands in its column. */
  unitOf(token: TokenPick): Unit | undefined {
    const units = token.side === "query" ? this.one.rowUnits : this.one.columnUnits;
    return units.find((unit) => unit.positions.includes(token.position));
  }

  nameOf(head: number, layer = this.layer?.layer ?? 0): string {
    return headName(this.about, this.tower?.name ?? "", layer, head);
  }

  /** Everything at once, as an address or Python has it. */
  setPicks(picks: Partial<Picks>): void {
    const next: Partial<Picks> = { ...$state.snapshot(this.picks), ...picks };
    if (picks.heads && picks.layer === undefined) delete next.layer;
    if (picks.heads && picks.tower === undefined) delete next.tower;
    if (picks.heads && picks.mapHead === undefined && next.mapHead) next.mapHead = picks.heads[0] ?? null;
    this.picks = fitting(next, this.about);
  }

  setTower(name: string): void {
    this.picks.tower = name;
    const tower = this.about.towers.find((one) => one.name === name);
    const layer = tower?.layers.find((one) => one.layer === this.picks.layer) ?? tower?.layers[0];
    this.picks.token = null;
    this.picks.pinned = false;
    this.picks.layer = layer?.layer ?? 0;
    const shown = this.picks.tab === "image" ? 1 : (layer?.heads ?? 0);
    this.picks.heads = Array.from({ length: shown }, (_, head) => this.nameOf(head));
  }

  /** Another layer, with the same head numbers where it has them. */
  setLayer(layer: number): void {
    const info = this.tower.layers.find((one) => one.layer === layer);
    if (!info) return;
    const every = this.heads.length === this.layer?.heads && this.picks.tab !== "image";
    const kept = every ? [] : this.heads.filter((head) => head < info.heads);
    const heads = kept.length > 0 ? kept : Array.from({ length: info.heads }, (_, head) => head);
    this.picks.layer = layer;
    this.picks.heads = heads.map((head) => this.nameOf(head, layer));
  }

  toggleHead(head: number): void {
    const name = this.nameOf(head);
    const now = this.picks.heads;
    const next = now.includes(name) ? now.filter((one) => one !== name) : [...now, name];
    this.picks.heads = next.length > 0 ? sorted(next, this.about) : now;
  }

  /** Alone; a second time brings back those that were there. */
  soloHead(head: number, before: string[] = this.picks.heads): void {
    const name = this.nameOf(head);
    const alone = before.length === 1 && before[0] === name;
    const every = Array.from({ length: this.layer?.heads ?? 0 }, (_, at) => this.nameOf(at));
    if (alone) this.picks.heads = this.beforeSolo ?? every;
    else this.picks.heads = [name];
    this.beforeSolo = alone ? null : [...before];
    if (this.beforeSolo && !this.beforeSolo.every((one) => every.includes(one))) this.beforeSolo = null;
  }

  allHeads(): void {
    this.picks.heads = Array.from({ length: this.layer?.heads ?? 0 }, (_, head) => this.nameOf(head));
  }

  openHead(place: HeadPlace, view: Picks["view"] = this.picks.view): void {
    this.picks.layer = place.layer;
    this.picks.heads = [headName(this.about, place.tower, place.layer, place.head)];
    if (this.picks.mapHead !== null) this.picks.mapHead = this.picks.heads[0];
    this.picks.tower = place.tower;
    this.picks.view = view;
  }

  /** The neighbouring head, one step across heads or layers. */
  step(across: number, down: number): void {
    const layers = this.tower.layers;
    const at = layers.findIndex((one) => one.layer === this.picks.layer);
    const next = layers[Math.min(layers.length - 1, Math.max(0, at + down))];
    if (across === 0 && this.heads.length > 1) return this.setLayer(next.layer);
    const from = this.heads.length > 1 && across > 0 ? this.heads[0] - 1 : this.heads[0];
    const head = Math.min(next.heads - 1, Math.max(0, from + across));
    this.openHead({ tower: this.tower.name, layer: next.layer, head });
  }

  stepInput(by: number): void {
    const inputs = this.about.inputs;
    const at = inputs.findIndex((one) => one.number === this.picks.input);
    const next = inputs[(at + by + inputs.length) % inputs.length];
    if (next) this.setInput(next.number);
  }

  setInput(number: number): void {
    if (number === this.picks.input) return;
    this.picks.input = number;
    this.picks.token = null;
    this.picks.pinned = false;
    this.picks.hidden = {};
    if (this.picks.other === number) this.picks.other = null;
  }

  pin(token: TokenPick): void {
    const same =
      this.picks.pinned && this.picks.token?.side === token.side && this.picks.token.position === token.position;
    this.picks.token = same ? null : { ...token };
    this.picks.pinned = !same;
  }

  letGo(): void {
    this.picks.token = null;
    this.picks.pinned = false;
  }

  /** The strongest of very many lines are on their way to the screen, the others not yet. */
  begun(): void {
    if (this.state === "opening") this.state = "drawing";
  }

  /** A panel's first full picture is on its way to the screen. */
  painted(): void {
    this.state = "ready";
  }

  sorry(words: string, grave: boolean): void {
    this.failure = words;
    if (!grave) this.painted();
    else if (this.state !== "ready") this.state = "error";
  }

  /** The map shows one head; the close-ups one or several. */
  setTab(tab: Picks["tab"], view: Picks["view"] = this.picks.view): void {
    if (tab === "map" && this.picks.mapHead !== null) {
      this.picks.mapHead = this.focus;
      this.picks.heads = [this.focus];
    }
    if (tab === "image") this.picks.heads = [this.focus];
    Object.assign(this.picks, { tab, view });
  }

  /** One step out: first the pinned token, then from the head to all heads of the model. */
  out(): void {
    if (this.picks.token) this.letGo();
    else if (this.picks.tab === "map") this.map.leave();
    else if (this.picks.tab === "text" && this.picks.view !== "model") this.picks.view = "model";
  }
}

function sorted(names: string[], about: About): string[] {
  return [...names].sort((a, b) => (headPlace(about, a)?.head ?? 0) - (headPlace(about, b)?.head ?? 0));
}
