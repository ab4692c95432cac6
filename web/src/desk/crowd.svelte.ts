// What is the state of a head with more tokens than its map shows? Whether all are placed, where, what they are.
import { crowdOf, knownOf, marked, pointOfToken, type Crowd, type Sides } from "../map/crowd";
import type { Shades } from "../draw/density";
import type { Column } from "../map/data";
import { matchingTexts } from "../map/query";
import { decode } from "../source/packet";
import type { AllInfo, MapProgress } from "../source/wire";
import type { Desk } from "./desk.svelte";
import { sentence } from "./pane.svelte";

const POLL = 700;

export class CrowdDesk {
  private asked: { name: string; info: AllInfo } | undefined = $state.raw();
  private loaded: { name: string; crowd: Crowd; sides: Sides } | undefined = $state.raw();
  private column: { name: string; column: Column } | undefined = $state.raw();
  progress: MapProgress | undefined = $state.raw();
  trouble = $state("");
  /** Number of the point under the cursor; −1 if none. */
  hover = $state(-1);
  /** How many points are drawn one by one; −1 by density. */
  dots = $state(-1);

  /** The head in view on its map, as in a path; empty while all heads are in view. */
  private readonly name = $derived.by(() => {
    const { map } = this.desk;
    return map.info && map.data && map.single >= 0 ? `${map.info.name}/${map.data.names[map.single]}` : "";
  });
  readonly info: AllInfo | undefined = $derived.by(() =>
    this.asked?.name === this.name ? this.asked.info : undefined,
  );
  readonly total: number = $derived.by(() => (this.info ? this.info.queries + this.info.keys : 0));
  /** Whether the head has tokens that are not on its map. */
  readonly larger: boolean = $derived.by(() => this.total > (this.desk.map.data?.points ?? 0));
  private readonly present = $derived.by(() => (this.loaded?.name === this.name ? this.loaded : undefined));
  readonly sides: Sides | undefined = $derived.by(() => this.present?.sides);

  /** Why only the sample is shown though all tokens are placed; empty if all are shown. */
  readonly only: string = $derived.by(() => {
    const { picks, about } = this.desk;
    if (picks.colour === "norm" || picks.sizeByNorm) return "vector lengths are known of the sample";
    return about.added.length > 0 ? "added texts are shown among the sample" : "";
  });
  /** The points to draw; undefined while the sample is shown. */
  readonly crowd: Crowd | undefined = $derived.by(() =>
    this.only === "" && this.shades ? this.present?.crowd : undefined,
  );
  private readonly columnName = $derived.by(() => {
    const { map, picks } = this.desk;
    const known = map.data?.colours.some(({ name }) => name === picks.colour);
    return known && map.info && map.group ? `${map.info.name}/${map.group.name}/${picks.colour}` : "";
  });
  private readonly shade: Uint16Array | undefined = $derived.by(() => {
    const { colouring } = this.desk.map;
    const crowd = this.present?.crowd;
    const column =
      this.columnName === "" ? null : this.column?.name === this.columnName ? this.column.column : undefined;
    if (!crowd || !colouring || column === undefined) return undefined;
    const bytes = column ? colouring.bytes(column.values.data) : null;
    const out = new Uint16Array(crowd.count);
    // Where queries and keys are of one stream, their values are sent once.
    const again = bytes && bytes.length < crowd.count ? crowd.queries : 0;
    for (let slot = 0; slot < out.length; slot++) {
      const at = crowd.order[slot];
      const query = at < crowd.queries;
      out[slot] = (bytes ? bytes[query ? at : at - again] : 0) + (query ? 0 : 256);
    }
    return out;
  });
  /** For each slot, whether it is of the picked token's input, or found by the search. */
  private readonly marks: Uint8Array | null = $derived.by(() => {
    const { present } = this;
    const { token, pinned, input, search, searchKind } = this.desk.picks;
    if (!present) return null;
    const { crowd, sides } = present;
    if (token && pinned) {
      const [first, second] = sides.map(({ starts }) => [starts.data[input], starts.data[input + 1]]);
      return marked(crowd, (at) =>
        at < crowd.queries
          ? at >= first[0] && at < first[1]
          : at - crowd.queries >= second[0] && at - crowd.queries < second[1],
      );
    }
    const found = sides.map(({ texts }) => matchingTexts(texts, search, searchKind));
    const [queries, keys] = found;
    if (!queries || !keys) return null;
    const [queryText, keyText] = sides.map(({ text }) => text.data);
    return marked(crowd, (at) =>
      at < crowd.queries ? queries[queryText[at]] === 1 : keys[keyText[at - crowd.queries]] === 1,
    );
  });
  readonly shades: Shades | undefined = $derived.by(() => {
    const scale = this.desk.map.colouring?.scale;
    return this.shade && scale ? { shade: this.shade, scale, marks: this.marks } : undefined;
  });
  /** Number of the point of the picked token; −1 if none. */
  readonly picked: number = $derived.by(() => {
    const { token, input, pinned } = this.desk.picks;
    const { present } = this;
    return present && token && pinned
      ? pointOfToken(present.crowd, present.sides, input, token.side, token.position)
      : -1;
  });

  /** Create while a component is initialised. */
  constructor(private readonly desk: Desk) {
    $effect(() => this.look());
    $effect(() => this.load());
    $effect(() => this.colour());
  }

  /** Get what a point is. */
  known(at: number) {
    return this.present && at >= 0 ? knownOf(this.present.crowd, this.present.sides, at) : undefined;
  }

  /** Pick the token of a point, as on the map; pick it again to release it. */
  pick(at: number): void {
    const { desk } = this;
    const known = this.known(at);
    if (!known || at === this.picked) return desk.letGo();
    desk.setInput(known.input);
    const token = { side: known.side, position: known.position };
    Object.assign(desk.picks, { token, pinned: true, chosen: null });
  }

  async place(): Promise<void> {
    const [map, head] = this.name.split("/");
    const { source } = this.desk;
    this.trouble = "";
    try {
      this.progress = decode<MapProgress>(await source.ask("place", { map, head }));
      while (this.progress.state === "running" || this.progress.state === "waiting") {
        await new Promise((done) => setTimeout(done, POLL));
        this.progress = decode<MapProgress>(await source.get("progress"));
      }
      if (this.progress.state === "failed") this.trouble = this.progress.error;
      if (this.progress.state === "done") this.asked = undefined;
    } catch (error) {
      this.trouble = sentence(error);
    }
    this.look();
  }

  async stop(): Promise<void> {
    this.progress = decode<MapProgress>(await this.desk.source.ask("cancel", {}));
  }

  private look(): void {
    const { name, asked } = this;
    if (name === "" || asked?.name === name) return;
    // A saved page has the sample only, which is no trouble.
    this.desk.source.get(`all/${name}`).then(
      (bytes) => (this.asked = { name, info: decode<AllInfo>(bytes) }),
      () => {},
    );
  }

  private load(): void {
    const { name, info, larger, loaded } = this;
    const { store, map } = this.desk;
    if (!info?.placed || !larger || loaded?.name === name || !map.info) return;
    const [head, box] = [map.single, map.data?.boxes];
    const dims = map.data?.dims ?? 2;
    if (!box) return;
    Promise.all([
      store.ask("all_places", ...name.split("/")),
      store.ask("all_tokens", info.streams[0]),
      store.ask("all_tokens", info.streams[1]),
    ]).then(
      ([places, queries, keys]) => {
        const own = box.subarray(head * 2 * dims, (head + 1) * 2 * dims);
        this.loaded = { name, crowd: crowdOf(places, own), sides: [queries, keys] };
      },
      (error: unknown) => (this.trouble = sentence(error)),
    );
  }

  private colour(): void {
    const { columnName, present, column } = this;
    if (!present || columnName === "" || column?.name === columnName) return;
    this.desk.store.ask("all_column", ...columnName.split("/")).then(
      (answer) => (this.column = { name: columnName, column: answer.column }),
      (error: unknown) => (this.trouble = sentence(error)),
    );
  }
}
