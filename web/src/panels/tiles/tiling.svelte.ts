// Where do the tiles of one head come from? An overview at once, an exact one soon, finer tiles as they are looked at.
import { sentence } from "../../desk/pane.svelte";
import type { Desk } from "../../desk/desk.svelte";
import { decode } from "../../source/packet";
import type { OverviewPacket, Picks, TilePacket } from "../../source/wire";
import { pixelsOf, stepsOf, type Cells } from "../../tiles/cells";
import { Loader } from "../../tiles/loader";
import { nameOf, standIn, type Part, type TileName } from "../../tiles/need";
import type { Extent } from "../../tiles/view";
import type { Look } from "./paint";

/** Tiles kept; each takes half a megabyte. */
const MOST = 160;

/** A tile and its picture, which is made when it is first drawn. */
export class Tile {
  private picture: HTMLCanvasElement | undefined;
  private look = "";

  constructor(readonly cells: Cells) {}

  /** Get one pixel for each cell. */
  pictureOf({ pooled, scale, dark }: Look): HTMLCanvasElement {
    const look = `${pooled} ${dark}`;
    if (this.picture && this.look === look) return this.picture;
    const [high, wide] = this.cells.packet.strongest.shape;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [wide, high];
    const image = new ImageData(pixelsOf(stepsOf(this.cells, pooled), scale), wide, high);
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    [this.picture, this.look] = [canvas, look];
    return canvas;
  }
}

/** Which head of which input, and the keys that are taken out of it. */
export interface Wanted {
  input: number;
  head: string;
  /** As a path says it: "", "sinks" or positions. */
  without: string;
  /** What is shown: weights, what is moved, or contributions, which have signs. */
  shown: Picks["shown"];
}

/** What the tiles of a long input show. */
export const shownTiles = (desk: Desk): Picks["shown"] => (desk.about.no_moved ? "weights" : desk.picks.shown);

/** What stands before a path; a tile names the keys that are taken out at its end. */
const asOf = ({ shown }: Wanted): string => (shown === "weights" ? "" : `as/${shown}/-`);

export class Tiling {
  overview: OverviewPacket | undefined = $state.raw();
  failure = $state("");
  /** Why finer tiles cannot be had. */
  coarse = $state("");
  /** Wanted tiles that are on their way. */
  missing = $state(0);
  /** Counts what arrives, so that the map is drawn again. */
  arrived = $state(0);
  private whole: Tile | undefined;
  private closed = false;
  private readonly loader: Loader<Tile>;

  constructor(
    private readonly desk: Desk,
    readonly wanted: Wanted,
  ) {
    this.loader = new Loader(
      (name, signal) => this.tile(name, signal),
      () => this.told(),
      MOST,
    );
    void this.load();
  }

  get extent(): Extent {
    return { rows: this.overview?.n ?? 1, columns: this.overview?.m ?? 1 };
  }

  get top(): number {
    return this.overview?.level ?? 0;
  }

  /** Get a tile that is there. */
  get({ level, row, column }: TileName): Tile | undefined {
    return level === this.top ? this.whole : this.loader.get(nameOf({ level, row, column }));
  }

  /** Get what to draw in place of a tile: itself, or a part of a coarser one. */
  standIn(tile: TileName): Part | null {
    return standIn(tile, this.top, (candidate) => this.get(candidate) !== undefined);
  }

  /** Ask for the tiles that are in view; others are dropped. */
  want(tiles: TileName[]): void {
    this.loader.want(tiles.filter(({ level }) => level < this.top).map(nameOf));
    this.told(false);
  }

  retry(): void {
    this.loader.retry();
    this.told(false);
  }

  close(): void {
    this.closed = true;
    this.loader.close();
  }

  private told(tile = true): void {
    if (this.closed) return;
    this.missing = this.loader.missing;
    this.coarse = this.loader.failure === undefined ? "" : sentence(this.loader.failure);
    if (tile) this.arrived += 1;
  }

  /** Load the overview of some rows, then that of all; either alone will do. */
  private async load(): Promise<void> {
    const rough = await this.ask(1).catch(() => undefined);
    if (this.closed) return;
    if (rough) this.show(rough);
    try {
      const exact = await this.ask(0);
      if (!this.closed) this.show(exact);
    } catch (error) {
      if (this.closed) return;
      if (rough) this.coarse = sentence(error);
      else this.failure = sentence(error);
    }
  }

  private ask(sampled: 0 | 1): Promise<OverviewPacket> {
    const { input, head, without } = this.wanted;
    const rest = [input, head, sampled, ...(without ? [without] : [])];
    return this.desk.store.shownAs("overview", asOf(this.wanted), ...rest);
  }

  private show(overview: OverviewPacket): void {
    const { level, step, cells } = overview;
    this.whole = new Tile({ level, row: 0, column: 0, step, packet: cells });
    this.overview = overview;
    this.arrived += 1;
  }

  private async tile(name: string, signal: AbortSignal): Promise<Tile> {
    const { input, head, without } = this.wanted;
    const as = asOf(this.wanted);
    const path = [...(as ? [as] : []), "tile", input, head, name, ...(without ? [without] : [])].join("/");
    const { level, row, column, cells } = decode<TilePacket>(await this.desk.source.get(path, signal));
    return new Tile({ level, row, column, step: 1, packet: cells });
  }
}
