// What is the state of the Image tab? The pictures, their patches, and where tokens look.
import { arrange, type Rect } from "../image/arrange";
import { atPlace, coversOf, patchesOf, type Cover, type Patch } from "../image/patches";
import { flows, looksOf, strongest, type Looks, type Mark } from "../image/marks";
import { mostOf, type Shades } from "../image/heat";
import { loadPicture, type Loaded } from "../image/picture";
import { tokensIn, type TokenInfo } from "../source/tokens";
import type { InputInfo, Stream, TokenPick } from "../source/wire";
import { blank, hide } from "../weights/hide";
import { dense, fromEdges, fromWhole, type HeadRows } from "../weights/rows";
import type { Desk } from "./desk.svelte";
import { sentence } from "./pane.svelte";
import { placeOf } from "./store";

interface Gazed {
  name: string;
  rows: HeadRows;
}

export class ImageDesk {
  private gazed: Gazed | undefined = $state.raw();
  /** The same before the edits, where the difference is shown. */
  private before: Gazed | undefined = $state.raw();
  private refused: { name: string; why: string } | undefined = $state.raw();
  private loaded: { input: number; pictures: Loaded[] } | undefined = $state.raw();
  failure: string | undefined = $state();
  /** The place of the picked patch, since layers may number patches differently. */
  private place: { stream: string; position: number; patch: Patch | undefined } | undefined;
  /** The side on which the next patch is picked. */
  private nextSide: TokenPick["side"] = $state("query");

  readonly input: InputInfo | undefined = $derived.by(() => this.desk.one.ready?.input);
  private readonly queryStream: Stream | undefined = $derived.by(() => this.stream(this.desk.layer?.queries));
  private readonly keyStream: Stream | undefined = $derived.by(() => this.stream(this.desk.layer?.keys));
  readonly queries: (Patch | undefined)[] = $derived.by(() => placesIn(this.queryStream));
  readonly same: boolean = $derived.by(() => this.queryStream === this.keyStream);
  readonly keys: (Patch | undefined)[] = $derived.by(() => (this.same ? this.queries : placesIn(this.keyStream)));
  /** Streams of the input that have patches; empty if the input has no picture. */
  readonly patched: string[] = $derived.by(() =>
    (this.input?.streams ?? []).filter((stream) => placesIn(stream).some(Boolean)).map((stream) => stream.name),
  );
  readonly placed: boolean = $derived.by(() => this.queries.some(Boolean) || this.keys.some(Boolean));

  readonly covers: Cover[] = $derived.by(() => {
    const aspects = (this.input?.pictures ?? []).map(({ width, height }) => width / height);
    // Cross-attention has patches on one side only.
    const all = coversOf(this.queries.some(Boolean) ? this.queries : this.keys, aspects);
    const { picture } = this.desk.picks;
    return all.some((cover) => cover.image === picture) ? all.filter((cover) => cover.image === picture) : all;
  });
  readonly pictures: Loaded[] = $derived.by(() =>
    this.loaded && this.loaded.input === this.input?.number ? this.loaded.pictures : [],
  );

  private readonly wanted: string = $derived.by(() => this.pathOf(this.desk.lab.shown));
  private readonly rows: HeadRows | undefined = $derived.by(() =>
    this.gazed?.name === this.wanted ? this.leftOf(this.gazed.rows) : undefined,
  );
  private readonly looksBefore: Looks | undefined = $derived.by(() =>
    this.desk.lab.compares && this.before?.name === this.pathOf(this.desk.lab.first)
      ? this.looksIn(this.leftOf(this.before.rows))
      : undefined,
  );
  /** The rows for the inspector; tokens are not merged into words here. */
  readonly shownRows: HeadRows[] = $derived.by(() => (this.rows ? [this.rows] : []));
  readonly looks: Looks | undefined = $derived.by(() => this.rows && this.looksIn(this.rows));
  /** Whether picture and attention are loaded. */
  readonly ready: boolean = $derived.by(() => this.looks !== undefined && this.pictures.length > 0);
  readonly approximate: string = $derived.by(() =>
    this.rows && this.rows.k < this.rows.m && this.refused?.name === this.wanted ? this.refused.why : "",
  );

  /** The token whose weights are on the picture: the picked one, or else the one under the cursor. */
  readonly token: TokenPick | null = $derived.by(() => {
    const { token, pinned } = this.desk.picks;
    const chosen = pinned ? token : (this.desk.hover ?? token);
    return chosen && chosen.position < this.placesOf(chosen.side).length ? chosen : null;
  });
  readonly side: TokenPick["side"] = $derived.by(() => this.desk.picks.token?.side ?? this.nextSide);
  /** Its weights with the other side, and the largest of them on a patch. */
  readonly shades: Shades | undefined = $derived.by(() => {
    if (!this.looks || !this.token) return undefined;
    const { side, position } = this.token;
    const before = this.looksBefore && looksOf(this.looksBefore, side, position);
    const weights = looksOf(this.looks, side, position).map((weight, at) => weight - (before?.[at] ?? 0));
    return {
      weights,
      most: mostOf(weights, this.placesOf(other(side))),
      signed: before !== undefined || this.desk.one.signed,
    };
  });
  readonly marks: Mark[] = $derived.by(() => {
    const { arrows, flows: all, flowsFrom } = this.desk.picks;
    if (!this.looks || !(arrows || all)) return [];
    const marks = all ? flows(this.looks, flowsFrom) : strongest(this.looks);
    const { token } = this;
    if (!token) return marks;
    return marks.filter((mark) => (token.side === "query" ? mark.from : mark.to) === token.position);
  });

  private readonly shown: boolean = $derived.by(() => this.desk.about.pictures && this.desk.needs("pictures"));

  /** Create while a component is initialised. */
  constructor(private readonly desk: Desk) {
    $effect(() => this.fetch());
    $effect(() => this.fetchBefore());
    $effect(() => this.fetchPictures());
    $effect(() => this.keepPlace());
  }

  /** Name the weights of an input in a path. */
  private pathOf(input: number): string {
    const { picks, tower, place, heads } = this.desk;
    const head = [this.desk.as, input, tower.name, place.layer];
    return [...head, picks.combine === "head" ? (heads[0] ?? 0) : picks.combine].join("/");
  }

  private leftOf(rows: HeadRows): HeadRows {
    const { hiddenRows, hiddenColumns } = this.desk.one;
    if (this.desk.as) return blank(rows, hiddenRows, hiddenColumns);
    return this.desk.picks.combine === "head" ? hide(rows, hiddenRows, hiddenColumns) : rows;
  }

  private looksIn(rows: HeadRows): Looks | undefined {
    if (rows.n !== this.queries.length || rows.m !== this.keys.length) return undefined;
    return { weights: dense(rows), m: rows.m, queries: this.queries, keys: this.keys, same: this.same };
  }

  placesOf(side: TokenPick["side"]): (Patch | undefined)[] {
    return side === "query" ? this.queries : this.keys;
  }

  tokensOf(side: TokenPick["side"]): TokenInfo[] {
    const stream = side === "query" ? this.queryStream : this.keyStream;
    return stream ? tokensIn(stream) : [];
  }

  /** Name a token: "row 3, column 5", counted from zero as heads are; without a place, its text. */
  nameOf(token: TokenPick): string {
    const info = this.tokensOf(token.side)[token.position];
    const patch = this.placesOf(token.side)[token.position];
    if (!info || !patch) return info?.text ?? "";
    const picture = (this.input?.pictures.length ?? 0) > 1 ? `picture ${patch.image + 1}, ` : "";
    return info.row < 0 ? `${picture}patch ${token.position}` : `${picture}row ${info.row}, column ${info.column}`;
  }

  /** Tell whether a token is a patch; padding counts too. */
  isPatch(side: TokenPick["side"], position: number): boolean {
    return ((side === "query" ? this.queryStream : this.keyStream)?.image?.data[position] ?? -1) >= 0;
  }

  arranged(width: number, height: number): Rect[] {
    return arrange(
      this.covers.map((cover) => cover.aspect),
      width,
      height,
    );
  }

  /** Get the side on which a token is picked: the current side, if the token is on it. */
  sideFor(position: number, patch: boolean): TokenPick["side"] {
    const fits = (side: TokenPick["side"]) =>
      position < this.tokensOf(side).length && Boolean(this.placesOf(side)[position]) === patch;
    return fits(this.side) ? this.side : other(this.side);
  }

  /** Pick patches as queries, which look, or as keys, which are looked at. */
  setSide(side: TokenPick["side"]): void {
    this.nextSide = side;
    const { token } = this.desk.picks;
    if (token && this.same) this.desk.picks.token = { side, position: token.position };
  }

  swap(): void {
    this.setSide(other(this.side));
  }

  private stream(name: string | undefined): Stream | undefined {
    return this.input?.streams.find((stream) => stream.name === name);
  }

  /** Go from a tower without patches to a tower with patches. */
  toPatches(): void {
    if (!this.input || this.placed) return;
    const withPatches = this.desk.about.towers.find((tower) =>
      tower.layers.some((layer) => this.patched.includes(layer.queries) || this.patched.includes(layer.keys)),
    );
    if (withPatches && withPatches.name !== this.desk.tower.name) this.desk.setTower(withPatches.name);
  }

  /** Keep the picked place, not its number: layers may order patches differently, or have fewer. */
  private keepPlace(): void {
    const { token } = this.desk.picks;
    const stream = (token?.side === "key" ? this.keyStream : this.queryStream)?.name;
    if (!token || !stream || !this.placed) return void (this.place = undefined);
    const places = this.placesOf(token.side);
    const before = this.place;
    if (before && before.stream !== stream && before.position === token.position && before.patch) {
      const patch = atPlace(places, before.patch);
      if (patch && patch.position !== token.position)
        this.desk.picks.token = { side: token.side, position: patch.position };
      this.place = { stream, position: patch?.position ?? token.position, patch };
    } else this.place = { stream, position: token.position, patch: places[token.position] };
  }

  private fetchPictures(): void {
    const { input } = this;
    if (!this.shown || !input || this.loaded?.input === input.number) return;
    this.failure = undefined;
    Promise.all(
      input.pictures.map((_, image) => this.desk.store.ask("picture", input.number, image).then(loadPicture)),
    ).then(
      (pictures) => (this.loaded = { input: input.number, pictures }),
      (error: unknown) => (this.failure = sentence(error)),
    );
  }

  private fetch(): void {
    const name = this.wanted;
    const scene = this.desk.one.ready;
    if (!this.shown || !scene || !this.placed || this.gazed?.name === name) return;
    this.ask(name).then(
      (gazed) => (this.gazed = gazed),
      (error: unknown) => this.makeDo(name, sentence(error)),
    );
  }

  private fetchBefore(): void {
    const { lab } = this.desk;
    if (!this.shown || !lab.compares || !this.placed) return;
    this.ask(this.pathOf(lab.first)).then(
      (gazed) => (this.before = gazed),
      () => (this.before = undefined),
    );
  }

  private async ask(name: string): Promise<Gazed> {
    const { weights } = await this.desk.store.shown("gaze", ...name.split("/").slice(-4));
    const shares = weights.data instanceof Float32Array;
    const all = shares ? weights.data : Float32Array.from(weights.data, (weight) => weight / 65535);
    return { name, rows: fromWhole(all as Float32Array, weights.shape[0], weights.shape[1], shares) };
  }

  /** Use the strongest keys of each row, and say so: a saved page may contain nothing else. */
  private makeDo(name: string, why: string): void {
    if (this.wanted !== name) return;
    this.refused = { name, why };
    const scene = this.desk.one.ready;
    const place = scene ? placeOf(scene, this.desk.place.layer) : -1;
    if (this.desk.picks.combine !== "head" || !scene || place < 0 || this.desk.one.long)
      return void (this.failure = why);
    this.gazed = { name, rows: fromEdges(scene.edges, place, this.desk.heads[0] ?? 0) };
  }
}

export const other = (side: TokenPick["side"]): TokenPick["side"] => (side === "query" ? "key" : "query");

function placesIn(stream: Stream | undefined): (Patch | undefined)[] {
  if (!stream?.image || !stream.box)
    return stream ? new Array<undefined>(stream.tokens.entry.data.length).fill(undefined) : [];
  return patchesOf(stream.image.data, stream.box.data);
}
