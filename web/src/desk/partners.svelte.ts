// Which token's true and nearest partners are shown on the map, and where do its weights come from?
import { sightOf, trueNear, type Sight, type TrueNear } from "../map/partners";
import { fromEdges } from "../weights/rows";
import type { Desk } from "./desk.svelte";
import type { MapDesk } from "./map.svelte";
import { sentence } from "./pane.svelte";
import { headPlace } from "./picks";
import { placeOf, type Scene } from "./store";
import { setOf } from "./tokens";

/** A cursor that only passes over a point asks for nothing. */
const PAUSE = 40;

export class PartnersDesk {
  private answer: { name: string; sight: Sight } | undefined = $state.raw();
  private refused: { name: string; why: string } | undefined = $state.raw();

  /** The point under the cursor, or else the picked one; −1 where the option is off or all heads are in view. */
  private readonly at: number = $derived.by(() => {
    const { map, desk } = this;
    if (!desk.picks.trueNear || !map.data || map.single < 0) return -1;
    return map.hover?.head === map.single ? map.hover.at : map.picked;
  });
  private readonly asked = $derived.by(() => {
    const { at } = this;
    const data = this.map.data;
    if (!data || at < 0) return null;
    const side = at < data.queries ? ("query" as const) : ("key" as const);
    return { input: data.input[at], head: data.names[this.map.single], side, position: data.position[at] };
  });
  private readonly name = $derived.by(() => (this.asked ? Object.values(this.asked).join("/") : ""));

  readonly shown: TrueNear | undefined = $derived.by(() => {
    const { answer, asked, at, desk, map } = this;
    if (!asked || !map.data || answer?.name !== this.name) return undefined;
    const stream = asked.side === "query" ? desk.layer?.keys : desk.layer?.queries;
    const hidden = asked.input === desk.picks.input ? desk.picks.hidden[stream ?? ""] : undefined;
    return trueNear(map.data, map.single, at, answer.sight, setOf(hidden));
  });
  /** Why there is nothing to show. */
  readonly why: string = $derived.by(() => (this.name && this.refused?.name === this.name ? this.refused.why : ""));

  /** Create while a component is initialised. */
  constructor(
    private readonly desk: Desk,
    private readonly map: MapDesk,
  ) {
    $effect(() => this.fetch());
  }

  private fetch(): (() => void) | undefined {
    const { asked, name } = this;
    if (!asked || this.answer?.name === name) return undefined;
    const timer = setTimeout(() => {
      this.sight(asked).then(
        (sight) => {
          if (this.name === name) this.answer = { name, sight };
        },
        (error: unknown) => (this.refused = { name, why: sentence(error) }),
      );
    }, PAUSE);
    return () => clearTimeout(timer);
  }

  private async sight(asked: NonNullable<PartnersDesk["asked"]>): Promise<Sight> {
    const { input, head, side, position } = asked;
    const { store, source } = this.desk;
    if (source.live) {
      const { weights, seen } = await store.ask("partners", input, head, side, position);
      return { weights: weights.data, seen: seen.data };
    }
    const { tower: name, layer, head: number } = headPlace(this.desk.about, head) ?? this.desk.place;
    const tower = this.desk.about.towers.find((known) => known.name === name) ?? this.desk.tower;
    const scene: Scene = await store.scene(input, tower, layer).catch(() => store.scene(input, tower));
    const sight = sightOf(fromEdges(scene.edges, placeOf(scene, layer), number), side, position);
    if (!sight)
      throw new Error("this saved page has only the strongest weights; open the atlas with attention-atlas serve");
    return sight;
  }
}
