// What is the state of the map? Its data, the search, and the marked points.
import { loadPicture } from "../image/picture";
import { colouring, type Colouring } from "../map/colouring";
import { mapData, normsOf, pointOf, type MapData, type Norms } from "../map/data";
import { joined, type Joined } from "../map/join";
import { find, type Matched } from "../map/query";
import { countFound, ranking, sidesOf, type Found, type Ranked } from "../map/search";
import { decode } from "../source/packet";
import type { About, Actions, MapGroup, MapInfo, MapProgress, NumberColumn, Thumbs } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { PartnersDesk } from "./partners.svelte";
import { sentence } from "./pane.svelte";
import { headPlace } from "./picks";

const POLL = 700;

export class MapDesk {
  private loaded: { name: string; all: Joined; data: MapData } | undefined = $state.raw();
  failure: string | undefined = $state();
  private measured: { name: string; norms: Norms } | undefined = $state.raw();
  ranked: Ranked[] = $state.raw([]);
  progress: MapProgress | undefined = $state.raw();
  /** The point under the cursor: its head, and its number on the map. */
  hover: { head: number; at: number } | null = $state.raw(null);
  /** All pictures of the atlas on one sheet, in the finest size needed so far. */
  sheet: { thumbs: Thumbs; bitmap: ImageBitmap } | undefined = $state.raw();
  private askedSheet = -1;
  /** The action that runs now, and what went wrong with the last one. */
  busy = $state("");
  trouble = $state("");

  readonly info: MapInfo | undefined = $derived.by(
    () => this.desk.about.maps.find(({ name }) => name === this.desk.picks.map) ?? this.desk.about.maps[0],
  );
  readonly group: MapGroup | undefined = $derived.by(
    () => this.info?.groups.find(({ heads }) => heads.includes(this.desk.focus)) ?? this.info?.groups[0],
  );
  private readonly name = $derived.by(() =>
    this.info && this.group ? `${this.info.name}/${this.group.name}/${this.desk.about.added.join()}` : "",
  );
  readonly data: MapData | undefined = $derived.by(() =>
    this.loaded?.name === this.name ? this.loaded.data : undefined,
  );
  readonly norms: Norms | undefined = $derived.by(() =>
    this.data && this.measured?.name === this.name ? this.measured.norms : undefined,
  );
  /** Number of the head that fills the view; −1 while all heads are in view. */
  readonly single: number = $derived.by(() =>
    this.data && this.desk.mapHead ? this.data.names.indexOf(this.desk.mapHead) : -1,
  );
  /** Where the points lie along a direction of the picked head, if that colours them. */
  private along: { name: string; column: NumberColumn } | undefined = $state.raw();
  private readonly alongName = $derived.by(() =>
    this.desk.picks.colour === "direction" && this.info
      ? [this.info.name, this.desk.focus, this.desk.picks.direction].join("/")
      : "",
  );
  readonly colouring: Colouring | undefined = $derived.by(() => {
    const { colour, palette } = this.desk.picks;
    const along = this.along?.name === this.alongName ? this.along.column : undefined;
    return this.data && colouring(this.data, colour, { palette, dark: this.desk.dark }, along);
  });

  readonly matched: Matched = $derived.by(() => {
    const { search, searchKind } = this.desk.picks;
    return this.data ? find(this.data, search, searchKind) : { hits: null, trouble: "", missing: [] };
  });
  /** For each point, whether the search found it (1) or not (0); null without a search. */
  readonly hits: Uint8Array | null = $derived.by(() => this.matched.hits);
  readonly found: Found | null = $derived.by(() => {
    const { data, hits } = this;
    return data && hits ? countFound(hits, data.input, data.queries) : null;
  });
  /** Number of the point of the picked token; −1 if none is picked or it is not on this map. */
  readonly picked: number = $derived.by(() => {
    const { token, input, pinned } = this.desk.picks;
    return this.data && token && pinned ? pointOf(this.data, input, token.side, token.position) : -1;
  });
  /** The marked points: the input of the picked token, or else what the search found. */
  readonly marks: Uint8Array | null = $derived.by(() => {
    const { data } = this;
    const { token, pinned, input } = this.desk.picks;
    const added = this.desk.about.added.includes(input);
    if (!data || !((token && pinned) || (added && !this.hits))) return this.hits;
    return Uint8Array.from(data.input, (number) => Number(number === input));
  });

  readonly partners: PartnersDesk;

  /** Create while a component is initialised. */
  constructor(private readonly desk: Desk) {
    this.partners = new PartnersDesk(desk, this);
    $effect(() => this.fetch());
    $effect(() => this.measure());
    $effect(() => this.rank());
    $effect(() => this.fetchAlong());
  }

  private fetch(): void {
    const { name, info, group } = this;
    if (!this.desk.needs("map") || !info || !group || this.loaded?.name === name) return;
    this.failure = undefined;
    this.load(name, info, group).catch((error: unknown) => {
      if (this.name === name) this.failure = sentence(error);
    });
  }

  private async load(name: string, info: MapInfo, group: MapGroup): Promise<void> {
    const { store, about } = this.desk;
    const [places, points] = await Promise.all([
      store.ask("map", info.name, group.name),
      store.ask("points", info.name, group.name),
    ]);
    let all: Joined = { places, points, norms: null };
    for (const input of about.added) all = joined(all, await store.ask("extra", info.name, group.name, input));
    if (this.name === name) this.loaded = { name, all, data: mapData(about, all.places, all.points) };
  }

  /** Load a sheet of pictures; a coarser one stays in use until then. */
  wantSheet(level: number): void {
    if (level <= this.askedSheet) return;
    this.askedSheet = level;
    this.desk.store.ask("thumbs", level).then(
      async (thumbs) => {
        const { bitmap } = await loadPicture(thumbs);
        if (!this.sheet || this.sheet.thumbs.level < level) this.sheet = { thumbs, bitmap };
      },
      (error: unknown) => (this.desk.note = sentence(error)),
    );
  }

  private measure(): void {
    const { name, info, group, loaded } = this;
    const wanted = this.desk.picks.colour === "norm" || this.desk.picks.sizeByNorm;
    if (!wanted || !info || !group || loaded?.name !== name || this.measured?.name === name) return;
    const { store, about } = this.desk;
    const extras = about.added.map((input) => store.ask("extra", info.name, group.name, input));
    Promise.all([
      store.ask("map", info.name, group.name),
      store.ask("points", info.name, group.name),
      store.ask("norms", info.name, group.name),
      ...extras,
    ]).then(
      ([places, points, norms, ...more]) => {
        const whole = more.reduce<Joined>(joined, { places, points, norms });
        if (whole.norms && this.name === name) this.measured = { name, norms: normsOf(whole.norms) };
      },
      (error: unknown) => (this.desk.note = sentence(error)),
    );
  }

  private fetchAlong(): void {
    const name = this.alongName;
    if (!name || !this.desk.needs("map") || this.along?.name === name) return;
    this.desk.store.ask("along", ...name.split("/")).then(
      ({ column }) => (this.along = { name, column }),
      (error: unknown) => (this.desk.note = sentence(error)),
    );
  }

  private rank(): (() => void) | undefined {
    const { data, hits } = this;
    this.ranked = [];
    if (!data || !hits) return undefined;
    // Later, so that typing is not delayed by the comparison of heads.
    const timer = setTimeout(() => (this.ranked = ranking(data.heads, data, sidesOf(hits, data.queries))), 60);
    return () => clearTimeout(timer);
  }

  enter(head: string, camera: number[] | null = null): void {
    const place = headPlace(this.desk.about, head);
    if (!place) return;
    Object.assign(this.desk.picks, { inHead: true, camera });
    this.desk.openHead(place);
  }

  leave(): void {
    Object.assign(this.desk.picks, { inHead: false, camera: null });
  }

  /** Show the map of a method and a number of dimensions. */
  choose(method: string, dims: number): void {
    const info = this.desk.about.maps.find((known) => known.method === method && known.dims === dims);
    if (info) this.desk.picks.map = info.name;
  }

  /** Pick the token of a point, as in the other tabs; pick it again to release it. */
  pick(at: number): void {
    const { data, desk } = this;
    if (!data) return;
    const [input, position] = [data.input[at], data.position[at]];
    const side = at < data.queries ? "query" : "key";
    if (at === this.picked) return desk.letGo();
    desk.setInput(input);
    Object.assign(desk.picks, { token: { side, position }, pinned: true, chosen: null });
  }

  async add(text: string): Promise<void> {
    const done = await this.act("add", { text, second: null }, "The model is reading the text…");
    if (!done) return;
    await this.renew();
    this.desk.setInput(done.input);
  }

  async compute(method: string, dims: number): Promise<void> {
    this.progress = await this.act("compute", { method, dims }, "");
    await this.follow();
  }

  async cancel(): Promise<void> {
    this.progress = await this.act("cancel", {}, "");
  }

  /** Follow the computation of a map until it ends. */
  async follow(): Promise<void> {
    while (this.progress?.state === "running" || this.progress?.state === "waiting") {
      await new Promise((done) => setTimeout(done, POLL));
      this.progress = decode<MapProgress>(await this.desk.source.get("progress"));
    }
    if (this.progress?.state === "failed") this.trouble = this.progress.error;
    if (this.progress?.state === "done") {
      await this.renew();
      this.desk.picks.map = this.progress.map;
    }
  }

  private async renew(): Promise<void> {
    this.desk.about = decode<About>(await this.desk.source.get("about"));
  }

  private async act<K extends keyof Actions>(
    name: K,
    sent: Actions[K]["sent"],
    busy: string,
  ): Promise<Actions[K]["answer"] | undefined> {
    this.trouble = "";
    this.busy = busy;
    try {
      return decode<Actions[K]["answer"]>(await this.desk.source.ask(name, sent));
    } catch (error) {
      this.trouble = sentence(error);
      return undefined;
    } finally {
      this.busy = "";
    }
  }
}
