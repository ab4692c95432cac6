// What have all panels in common? The picks, and every way to change them.
import type { Source } from "../source/source";
import type { About, LayerInfo, Picks, Sinks, TokenPick, TokenSet, TowerInfo } from "../source/wire";
import { headColours, type Rgb } from "../draw/colour";
import type { Unit } from "../weights/units";
import { asPath, fitting, headName, headPlace, picksOf, type Chosen, type HeadPlace } from "./picks";
import type { Pointed } from "../lab/thing";
import { GuideDesk } from "./guide.svelte";
import { ImageDesk } from "./image.svelte";
import { LabDesk } from "./lab.svelte";
import { MapDesk } from "./map.svelte";
import { Pane } from "./pane.svelte";
import { QueueDesk } from "./queue.svelte";
import { Sieving } from "./sieving.svelte";
import { Store } from "./store";
import { tabNamed, type Need, type Tab } from "./tab";
import { NOTHING, keptOf, spanned, toggled } from "./token_set";
import { setOf } from "./tokens";

export type Chrome = "page" | "cell" | "file";

/** A token under the cursor; `pane` is the number of its input, 0 or 1. */
export interface Hover extends TokenPick {
  pane: number;
}

export class Desk extends Sieving {
  readonly store: Store;
  /** The story or the hints of a first visit. */
  readonly guide: GuideDesk;
  /** What the server does for this page. */
  readonly queue: QueueDesk;
  /** What the atlas has; it grows when a map is computed or a text is added. */
  about: About = $state.raw() as About;
  picks: Chosen = $state() as Chosen;
  hover: Hover | null = $state(null);
  /** The head under the cursor. */
  hoverHead: string | null = $state(null);
  /** The line or neuron under the cursor, for the menu of edits. */
  pointed: Pointed | null = null;
  systemDark = $state(false);
  /** Attention drawn by the panel on screen, and a note about its numbers. */
  drawn: { drawn: number; total: number } | null = $state.raw(null);
  note = $state("");
  /** Strength at which lines are drawn, 0 to 1; less than 1 where very many cross. */
  strength = $state(1);
  /** Number of tokens on screen, for the slider of lines per token. */
  width = $state(0);
  /** Exports the panel on screen as SVG. */
  figure: (() => string) | null = $state.raw(null);
  /** Whether all tokens fit on screen, even if they get too small to read. */
  fit = $state(false);
  /** The state of the page, for tests and hosts. */
  state: "opening" | "drawing" | "ready" | "error" = $state("opening");
  failure = $state("");

  readonly dark = $derived.by(() => (this.picks.theme === "auto" ? this.systemDark : this.picks.theme === "dark"));
  readonly tab: Tab = $derived.by(() => this.tabNamed(this.picks.tab));
  /** The tokens whose attention is shown: those that are kept, or else the one under the cursor. */
  readonly looking: TokenSet | null = $derived.by(() => {
    const at = this.hover ?? this.picks.token;
    return keptOf(this.picks) ?? (at && { side: at.side, positions: [at.position] });
  });
  /** The first picked head; all picked heads are of its layer. */
  readonly focus: string = $derived.by(() => this.picks.heads[0] ?? "");
  readonly place: HeadPlace = $derived.by(
    () => headPlace(this.about, this.focus) ?? { tower: this.about.towers[0]?.name ?? "", layer: 0, head: 0 },
  );
  readonly tower: TowerInfo = $derived.by(
    () => this.about.towers.find(({ name }) => name === this.place.tower) ?? this.about.towers[0],
  );
  readonly layer: LayerInfo | undefined = $derived.by(() =>
    this.tower?.layers.find(({ layer }) => layer === this.place.layer),
  );
  /** The head that fills the map; null while the map shows all heads. */
  readonly mapHead: string | null = $derived.by(() => (this.picks.inHead ? this.focus : null));
  /** Numbers of the picked heads within the layer. */
  readonly heads: number[] = $derived.by(() => this.picks.heads.map((name) => headPlace(this.about, name)?.head ?? 0));
  readonly colours: Rgb[] = $derived.by(() => headColours(this.layer?.heads ?? 1, this.dark));

  /** Sinks of the picked input; shown by name, and hidden as keys where the picks say so. */
  sinks: Sinks | undefined = $state.raw();
  /** What stands before the paths of attention: what is shown in place of weights, without which keys. */
  readonly as: string = $derived.by(() => this.asOf(this.picks.shown));

  /** The picked input, and the one it is compared with. */
  one!: Pane;
  two!: Pane;
  map!: MapDesk;
  image!: ImageDesk;
  lab!: LabDesk;

  /** What a page opened with: a saved one holds that, and weights. */
  readonly savedShown: Picks["shown"];
  private beforeSolo: string[] | null = null;

  constructor(
    readonly source: Source,
    about: About,
    readonly chrome: Chrome,
    picks: Partial<Picks>,
    readonly tabs: readonly Tab[],
    fresh = false,
  ) {
    super();
    this.about = about;
    this.store = new Store(source, () => this.as);
    this.queue = new QueueDesk(source);
    this.picks = fitting(picks, about, this.tabNamed(picks.tab));
    this.savedShown = picks.shown ?? "weights";
    this.guide = new GuideDesk(this, fresh);
  }

  private tabNamed(name?: string): Tab {
    return tabNamed(this.tabs, name, this.about, this.chrome);
  }

  /** Tell whether the current tab needs this from the source. */
  needs(what: Need): boolean {
    return (this.tab.needs?.(this) ?? ["attention"]).includes(what);
  }

  /** The name of the tab that this atlas opens on. */
  get opening(): string {
    return this.tabNamed().name;
  }

  /** Get the picks in the form of addresses and of Python. */
  snapshot(): Picks {
    return picksOf($state.snapshot(this.picks), this.about);
  }

  /** Load data when the picks change, from now on; call while a component is initialised. */
  open(): void {
    this.lab = new LabDesk(this);
    this.one = new Pane(this, () => this.lab.first);
    this.two = new Pane(this, () => this.lab.second);
    this.map = new MapDesk(this);
    this.image = new ImageDesk(this);
    $effect(() => this.fetchSinks());
  }

  /** Get the token, or the word that contains it, as its column shows it. */
  unitOf(token: TokenPick): Unit | undefined {
    const units = token.side === "query" ? this.one.rowUnits : this.one.columnUnits;
    return units.find((unit) => unit.positions.includes(token.position));
  }

  /** Get the hidden keys of a stream: the hidden tokens, and the sinks where they are taken out. */
  hiddenKeys(stream: string): ReadonlySet<number> {
    const hidden = this.picks.hidden[stream] ?? [];
    // Sinks are read only where they count: they arrive after the first picture, which would be painted again.
    const sinks = this.picks.withoutSinks ? this.sinks : undefined;
    const taken = sinks?.stream === stream && sinks.input === this.picks.input;
    return setOf(taken ? [...hidden, ...sinks.sinks.map(({ position }) => position)] : hidden);
  }

  private asOf(shown: Picks["shown"]): string {
    if (shown === "weights" || this.about.no_moved) return "";
    return asPath(shown, this.hiddenKeys(this.layer?.keys ?? ""));
  }

  /** Ask for what another choice of the switch would show, so that it is there when it is picked. */
  foresee(shown: Picks["shown"]): void {
    if (!this.source.live || this.one.long || !this.needs("attention") || this.lab.first !== this.picks.input) return;
    this.store.shownAs("edges", this.asOf(shown), this.picks.input, this.tower.name).catch(() => {});
  }

  /** Get the colour of a head's lines; null where numbers are signed: blue above zero, orange below. */
  lineColour(head: number): Rgb | null {
    return this.one.signed ? null : (this.colours[head] ?? null);
  }

  private fetchSinks(): void {
    const [input, tower] = [this.picks.input, this.tower?.name ?? ""];
    if (this.sinks?.input === input && this.sinks.tower === tower) return;
    // Their names can wait, so that the server does nothing else before the first picture.
    if (this.state === "opening" && !this.picks.withoutSinks) return;
    this.store.ask("sinks", input, tower).then(
      (sinks) => (this.sinks = sinks),
      () => (this.sinks = undefined),
    );
  }

  nameOf(head: number, layer = this.place.layer): string {
    return headName(this.about, this.place.tower, layer, head);
  }

  /** List all heads of a layer, or the first one if the tab shows one head. */
  private headsOf(tower: string, layer: LayerInfo | undefined): string[] {
    const names = Array.from({ length: layer?.heads ?? 0 }, (_, head) =>
      headName(this.about, tower, layer?.layer ?? 0, head),
    );
    return this.alone ? names.slice(0, 1) : names;
  }

  private get alone(): boolean {
    return Boolean(this.tab.alone?.({ heads: this.picks.heads, mapHead: this.mapHead }));
  }

  /** Set picks in the form of addresses and of Python; picks not given stay. */
  setPicks(picks: Partial<Picks>): void {
    const next: Partial<Picks> = { ...this.snapshot(), ...picks };
    if (picks.heads && picks.layer === undefined) delete next.layer;
    if (picks.heads && picks.tower === undefined) delete next.tower;
    if (picks.heads && picks.mapHead === undefined && next.mapHead) next.mapHead = picks.heads[0] ?? null;
    this.picks = fitting(next, this.about, this.tabNamed(next.tab));
  }

  setTower(name: string): void {
    const tower = this.about.towers.find((candidate) => candidate.name === name);
    const layer = tower?.layers.find((candidate) => candidate.layer === this.place.layer) ?? tower?.layers[0];
    this.letGo();
    this.picks.heads = this.headsOf(name, layer);
  }

  /** Go to another layer and keep the numbers of the heads, as far as it has them. */
  setLayer(layer: number): void {
    const info = this.tower.layers.find((candidate) => candidate.layer === layer);
    if (!info) return;
    const every = this.heads.length === this.layer?.heads && !this.alone;
    const kept = every ? [] : this.heads.filter((head) => head < info.heads);
    this.picks.heads =
      kept.length > 0 ? kept.map((head) => this.nameOf(head, layer)) : this.headsOf(this.place.tower, info);
  }

  toggleHead(head: number): void {
    const name = this.nameOf(head);
    const now = this.picks.heads;
    const next = now.includes(name) ? now.filter((other) => other !== name) : [...now, name];
    this.picks.heads = next.length > 0 ? sorted(next, this.about) : now;
  }

  /** Show one head only; the second time, show the heads of before again. */
  soloHead(head: number, before: string[] = this.picks.heads): void {
    const name = this.nameOf(head);
    const alone = before.length === 1 && before[0] === name;
    const every = this.headsOf(this.place.tower, this.layer);
    if (alone) this.picks.heads = this.beforeSolo ?? every;
    else this.picks.heads = [name];
    this.beforeSolo = alone ? null : [...before];
    if (this.beforeSolo && !this.beforeSolo.every((known) => every.includes(known))) this.beforeSolo = null;
  }

  allHeads(): void {
    this.picks.heads = this.headsOf(this.place.tower, this.layer);
  }

  openHead(place: HeadPlace, view: Picks["view"] = this.picks.view): void {
    this.picks.heads = [headName(this.about, place.tower, place.layer, place.head)];
    this.picks.view = view;
  }

  /** Go to the neighbouring head, one step across heads or layers. */
  step(across: number, down: number): void {
    const layers = this.tower.layers;
    const at = layers.findIndex(({ layer }) => layer === this.place.layer);
    const next = layers[Math.min(layers.length - 1, Math.max(0, at + down))];
    if (across === 0 && this.heads.length > 1) return this.setLayer(next.layer);
    const from = this.heads.length > 1 && across > 0 ? this.heads[0] - 1 : this.heads[0];
    const head = Math.min(next.heads - 1, Math.max(0, from + across));
    this.openHead({ tower: this.tower.name, layer: next.layer, head });
  }

  stepInput(by: number): void {
    const inputs = this.about.inputs;
    const at = inputs.findIndex(({ number }) => number === this.picks.input);
    const next = inputs[(at + by + inputs.length) % inputs.length];
    if (next) this.setInput(next.number);
  }

  setInput(number: number): void {
    if (number === this.picks.input) return;
    this.picks.input = number;
    this.letGo();
    this.picks.hidden = {};
    Object.assign(this.picks, { labAt: null, tileView: null, window: null });
    if (this.picks.other === number) this.picks.other = null;
  }

  pin(token: TokenPick): void {
    const same =
      this.picks.pinned && this.picks.token?.side === token.side && this.picks.token.position === token.position;
    const alone = same && this.picks.chosen === null;
    Object.assign(this.picks, { ...NOTHING, token: alone ? null : { ...token }, pinned: !alone });
  }

  /** Add tokens to the set of picked tokens, or take them out; undo reverts it. */
  choose(side: TokenSet["side"], positions: readonly number[]): void {
    this.alter(toggled($state.snapshot(this.picks), side, positions));
  }

  /** Pick all tokens from the last picked one to these. */
  chooseTo(side: TokenSet["side"], positions: readonly number[]): void {
    this.alter(spanned($state.snapshot(this.picks), side, positions));
  }

  /** Pin a query, and the key that it looks at; the lines of a long input move there. */
  pinCell(query: number, key: number): void {
    const token: TokenPick = { side: "query", position: query };
    Object.assign(this.picks, { token, pinned: true, chosen: null, key, window: null });
  }

  letGo(): void {
    Object.assign(this.picks, NOTHING);
  }

  /** Report that the strongest of very many lines are drawn, the others not yet. */
  begun(): void {
    if (this.state === "opening") this.state = "drawing";
  }

  /** Report that the panel is drawn completely. */
  painted(): void {
    this.state = "ready";
  }

  /** Report that a panel cannot be drawn; `grave`: that the whole page failed. */
  sorry(words: string, grave: boolean): void {
    this.failure = words;
    if (!grave) this.painted();
    else if (this.state !== "ready") this.state = "error";
  }

  /** Go to another tab; one that shows a single head keeps the first picked head. */
  setTab(tab: string, view: Picks["view"] = this.picks.view): void {
    Object.assign(this.picks, { tab, view });
    if (this.alone) this.picks.heads = [this.focus];
  }

  /** Go one step back: release the picked token, or else go from the head to all heads. */
  out(): void {
    if (this.picks.token || this.picks.chosen) this.letGo();
    else this.tab.out?.(this);
  }
}

function sorted(names: string[], about: About): string[] {
  return [...names].sort((a, b) => (headPlace(about, a)?.head ?? 0) - (headPlace(about, b)?.head ?? 0));
}
