// Which tokens and rows of one input are shown, after all filters?
import { untrack } from "svelte";
import { blank, byNorm, hide, rowNorms } from "../weights/hide";
import { linesOf, type Lines, type Sieve } from "../weights/lines";
import { tokensOfStream, type TokenInfo } from "../source/tokens";
import { WIDE } from "../tiles/window";
import { fromEdges, type HeadRows } from "../weights/rows";
import { mergeWords, unitsFrom, unitsOf, type Unit } from "../weights/units";
import type { Desk } from "./desk.svelte";
import { isExact, placeOf, tokensOf, type Scene } from "./store";
import { setOf } from "./tokens";
import { isLong } from "./picks";
import { Windows } from "./windows.svelte";

/** The most weights to load at once. */
const MOST = 16_000_000;
/** Milliseconds in which a layer that has arrived is painted. */
const PAINTED = 300;

export const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const countedFrom = (positions: ReadonlySet<number>, first: number): ReadonlySet<number> =>
  first === 0 ? positions : setOf([...positions].map((position) => position - first));

export class Pane {
  /** All layers; `opening` is the layer in view, which arrives earlier. */
  private scene: Scene | undefined = $state.raw();
  private opening: Scene | undefined = $state.raw();
  private failed: string | undefined = $state();
  private fetched: { name: string; rows: HeadRows[] } | undefined = $state.raw();
  private refused: { name: string; why: string } | undefined = $state.raw();
  private norms: { name: string; norms: Float32Array[] } | undefined = $state.raw();
  private noNorms: string | undefined = $state();

  /** The scene of the picks with at least their layer; undefined while it is loading. */
  readonly ready: Scene | undefined = $derived.by(() => {
    if (this.long) return this.windows.scene;
    const { opening } = this;
    const layer = opening && this.fits(opening) && placeOf(opening, this.desk.place.layer) >= 0 ? opening : undefined;
    // First choice, so that the view is not drawn again when the other layers arrive.
    if (layer && (this.exactly(layer) || !this.whole || !this.exactly(this.whole))) return layer;
    return this.whole;
  });
  /** The same with all layers. While the edits change, that of before stays until the new one is there. */
  readonly whole: Scene | undefined = $derived.by(() => (this.scene && this.fits(this.scene) ? this.scene : undefined));
  private readonly queries = $derived.by(() => this.desk.layer?.queries ?? "");
  private readonly keys = $derived.by(() => this.desk.layer?.keys ?? "");
  /** Whether the input is shown by windows and tiles, since it is too long to be loaded whole. */
  readonly long: boolean = $derived.by(() => isLong(this.desk.about, this.desk.lab.originOf(this.input())));
  readonly windows: Windows;
  readonly rowUnits: Unit[] = $derived.by(() => this.unitsIn(this.queries, this.ready?.edges.first_row ?? 0));
  readonly columnUnits: Unit[] = $derived.by(() => this.unitsIn(this.keys, this.ready?.edges.first_column ?? 0));
  readonly hiddenRows = $derived.by(() => setOf(this.desk.picks.hidden[this.queries]));
  readonly hiddenColumns = $derived.by(() => this.desk.hiddenKeys(this.keys));
  /** Whether the numbers may be below zero: contributions. */
  readonly signed: boolean = $derived.by(() => this.ready?.edges.of === "contribution");
  private readonly wanted = $derived.by(() =>
    [this.desk.as, this.input(), this.desk.tower.name, this.desk.place.layer, ...this.desk.heads].join("/"),
  );
  private readonly wantsExact = $derived.by(() => {
    const { words, view, chosen } = this.desk.picks;
    if (this.long) return false;
    // Without the weights of all keys, changes and sums would be wrong.
    return (
      this.hiddenRows.size + this.hiddenColumns.size > 0 ||
      words ||
      chosen !== null ||
      view === "heat" ||
      view === "read" ||
      this.desk.lab.second !== null
    );
  });

  /** Rows of the picked heads before anything is hidden. */
  private readonly base: HeadRows[] = $derived.by(() => {
    const scene = this.ready;
    const place = scene ? placeOf(scene, this.desk.place.layer) : -1;
    if (!scene || place < 0) return [];
    if (this.fetched?.name === this.wanted && this.wantsExact) return this.fetched.rows;
    return this.desk.heads.map((head) => fromEdges(scene.edges, place, head));
  });

  readonly rows: HeadRows[] = $derived.by(() => {
    const { first_row: top, first_column: left } = this.ready?.edges ?? { first_row: 0, first_column: 0 };
    const [hiddenRows, hiddenColumns] = [countedFrom(this.hiddenRows, top), countedFrom(this.hiddenColumns, left)];
    const without = this.ready?.as ? blank : hide;
    let rows = this.base.map((head) => without(head, hiddenRows, hiddenColumns));
    const norms = this.norms;
    if (this.desk.picks.valueWeighted && !this.ready?.as && norms?.name === this.wanted)
      rows = rows.map((head, at) => byNorm(head, norms.norms[at].subarray(left)));
    if (!this.desk.picks.words) return rows;
    const [rowUnits, columnUnits] = [unitsFrom(this.rowUnits, top), unitsFrom(this.columnUnits, left)];
    return rows.map((head) => mergeWords(head, rowUnits, columnUnits, hiddenRows));
  });

  readonly lines: Lines[] = $derived.by(() => this.rows.map((head) => linesOf(head, this.sieve)));

  readonly note: string = $derived.by(() => {
    if (this.noNorms && this.desk.picks.valueWeighted) return this.noNorms;
    if (this.long && this.hiddenColumns.size > 0) return "hidden tokens outside of the window still count in the lines";
    // Rounding cannot be seen; missing keys can.
    const approximate = this.wantsExact && this.base.some((head) => head.k < head.m);
    if (approximate && this.refused?.name === this.wanted) return `approximate: ${this.refused.why}`;
    return "";
  });

  private readonly sieve: Sieve = $derived.by(() => {
    const { threshold, topk, filter } = this.desk.picks;
    const [rows, columns] = [this.rowUnits, this.columnUnits];
    return {
      threshold,
      topk,
      filter,
      rowSegment: (at) => rows[at].segment,
      columnSegment: (at) => columns[at].segment,
    };
  });

  /** Create while a component is initialised; `input` returns null if there is no second input. */
  constructor(
    private readonly desk: Desk,
    private readonly input: () => number | null,
  ) {
    const needed = () => this.desk.needs("attention") || this.desk.needs("layer");
    this.windows = new Windows(desk, () => (this.long ? this.input() : null), needed);
    $effect(() => this.fetchScene());
    $effect(() => this.fetchExact());
    $effect(() => this.fetchNorms());
  }

  get failure(): string | undefined {
    if (this.long) return this.windows.noInput || this.windows.failure || undefined;
    return this.failed;
  }

  /** List all tokens of one side, shown or not. */
  tokensAt(side: "query" | "key"): TokenInfo[] {
    const stream = side === "query" ? this.queries : this.keys;
    return tokensOfStream(this.long ? this.windows.info : this.ready?.input, stream);
  }

  private unitsIn(stream: string, first: number): Unit[] {
    const scene = this.ready;
    if (!scene) return [];
    const tokens = tokensOf(scene, stream);
    return unitsOf(this.long ? tokens.slice(first, first + WIDE) : tokens, this.desk.picks.words, first);
  }

  private fetchScene(): void {
    const number = this.input();
    const tower = this.desk.tower;
    const [wanted, oneLayer] = [this.desk.needs("attention"), this.desk.needs("layer")];
    this.failed = undefined;
    if (number === null || this.long) return void (this.scene = this.opening = undefined);
    if (!wanted && !oneLayer) return;
    const as = this.desk.as;
    const here = () => this.input() === number && this.desk.tower.name === tower.name && this.desk.as === as;
    const all = () =>
      this.desk.store.scene(number, tower).then(
        (scene) => {
          if (here()) this.scene = scene;
        },
        (error: unknown) => {
          if (here() && !this.desk.lab.renew(number)) this.failed = sentence(error);
        },
      );
    if (!wanted) return this.fetchLayer(number, all);
    // A large saved page has its first layer before all others, and a server what is moved of one layer; weights of all
    // layers take it no longer than another request.
    const { view, layer, known } = untrack(() => ({
      view: this.desk.picks.view,
      layer: this.desk.place.layer,
      known: this.whole !== undefined,
    }));
    if ((this.desk.source.live && as === "") || view === "model" || known) return void all();
    // A server does not compute the others while the browser paints.
    const others = () => (this.desk.source.live ? setTimeout(() => here() && all(), PAINTED) : all());
    this.desk.store.scene(number, tower, layer).then((scene) => {
      if (here()) this.opening = scene;
      others();
    }, all);
  }

  /** Load the layer in view only; or all layers, if the host (such as a saved page) cannot send one. */
  private fetchLayer(number: number, all: () => Promise<void>): void {
    const [tower, layer] = [this.desk.tower, this.desk.place.layer];
    const known = untrack(() => this.ready);
    if (known && this.exactly(known) && placeOf(known, layer) >= 0) return;
    this.desk.store.scene(number, tower, layer).then((scene) => {
      if (scene.as !== this.desk.as) return;
      if (this.input() === number && this.desk.tower === tower && this.desk.place.layer === layer) this.opening = scene;
    }, all);
  }

  private exactly({ input, as }: Scene): boolean {
    return input.number === this.input() && as === this.desk.as;
  }

  /** Tell whether a scene is of the wanted input, edited or not, and of its tower. */
  private fits({ input, tower }: Scene): boolean {
    const { lab } = this.desk;
    return lab.originOf(input.number) === lab.originOf(this.input()) && tower.name === this.desk.tower.name;
  }

  private fetchExact(): void {
    const scene = this.ready;
    const { layer, heads } = this.desk;
    const name = this.wanted;
    if (!scene || !layer || !this.wantsExact || isExact(scene.edges)) return;
    const place = placeOf(scene, layer.layer);
    if (scene.edges.n[place] * scene.edges.m[place] * heads.length > MOST) {
      this.refused = { name, why: "there are too many weights to load at once; pick fewer heads" };
      return;
    }
    this.desk.store
      .exact(scene, layer, heads, (head) => this.desk.nameOf(head))
      .then(
        (rows) => (this.fetched = { name, rows }),
        (error: unknown) => (this.refused = { name, why: sentence(error) }),
      );
  }

  private fetchNorms(): void {
    const scene = this.ready;
    this.noNorms = undefined;
    if (!scene || !this.desk.picks.valueWeighted) return;
    if (!this.desk.layer?.has_vectors)
      return void (this.noNorms =
        "this atlas has no value vectors, so lines show plain attention; capture it again with value vectors");
    const name = this.wanted;
    const asked = this.desk.heads.map((head) =>
      this.desk.store.ask("vectors", scene.input.number, this.desk.nameOf(head)),
    );
    Promise.all(asked).then(
      (all) => {
        const norms = all.map(({ value }) => (value ? rowNorms(value.data, value.shape[1]) : null));
        if (norms.every((norm) => norm !== null)) this.norms = { name, norms };
        else
          this.noNorms =
            "this atlas has no value vectors, so lines show plain attention; capture it again with value vectors";
      },
      (error: unknown) => (this.noNorms = sentence(error)),
    );
  }
}
