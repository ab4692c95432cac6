// Which answers of the source are kept, so that a panel can ask again without waiting?
import { decode } from "../source/packet";
import type { Source } from "../source/source";
import { tokensOfStream, type TokenInfo } from "../source/tokens";
import {
  LARGEST_ANSWER,
  type Answers,
  type Edges,
  type InputInfo,
  type LayerInfo,
  type TowerInfo,
} from "../source/wire";
import { fromEdges, fromWhole, type HeadRows } from "../weights/rows";

/** Tokens and edge lists of one input, loaded together. */
export interface Scene {
  input: InputInfo;
  tower: TowerInfo;
  edges: Edges;
  /** What was asked for in place of weights; "" for weights. */
  as: string;
}

const KEPT = 48;

export class Store {
  private answers = new Map<string, Promise<unknown>>();

  /** `as` stands before the paths of attention: what is shown in place of weights; "" for weights. */
  constructor(
    private readonly source: Source,
    readonly as: () => string = () => "",
  ) {}

  /** Ask for attention, as the picks want it shown: weights, what is moved, or contributions. */
  shown<K extends "edges" | "rows" | "layer" | "gaze">(kind: K, ...rest: (string | number)[]): Promise<Answers[K]> {
    return this.shownAs(kind, this.as(), ...rest);
  }

  /** Ask for a packet behind what stands before its path: `as/moved/-`, or "" for weights. */
  shownAs<K extends keyof Answers>(kind: K, as: string, ...rest: (string | number)[]): Promise<Answers[K]> {
    return as ? this.get<Answers[K]>([as, kind, ...rest].join("/")) : this.ask(kind, ...rest);
  }

  ask<K extends keyof Answers>(kind: K, ...rest: (string | number)[]): Promise<Answers[K]> {
    return this.get<Answers[K]>([kind, ...rest].join("/"));
  }

  private get<T>(path: string): Promise<T> {
    let answer = this.answers.get(path) as Promise<T> | undefined;
    if (!answer) {
      answer = this.source.get(path).then((bytes) => decode<T>(bytes));
      // An error may be temporary, so it is not kept.
      answer.catch(() => this.answers.delete(path));
    }
    this.answers.delete(path);
    this.answers.set(path, answer);
    if (this.answers.size > KEPT) this.answers.delete(this.answers.keys().next().value as string);
    return answer;
  }

  /** Load an input with all layers of a tower, with one layer, which is faster, or with a window of one layer. */
  async scene(number: number, tower: TowerInfo, layer?: number, ...window: string[]): Promise<Scene> {
    const which = layer === undefined ? [] : [layer, ...window];
    const as = this.as();
    const [input, edges] = await Promise.all([
      this.ask("input", number),
      this.shown("edges", number, tower.name, ...which),
    ]);
    return { input, tower, edges, as };
  }

  /** Load the exact rows of some heads of a layer. */
  async exact(scene: Scene, layer: LayerInfo, heads: number[], named: (head: number) => string): Promise<HeadRows[]> {
    const place = placeOf(scene, layer.layer);
    const [n, m] = [scene.edges.n[place], scene.edges.m[place]];
    if (isExact(scene.edges)) return heads.map((head) => fromEdges(scene.edges, place, head));
    if (heads.length > 2 && layer.heads * n * m <= LARGEST_ANSWER) {
      // A server sends a whole layer faster; a saved page has single rows only.
      const all = await this.shown("layer", scene.input.number, scene.tower.name, layer.layer).catch(() => null);
      const shares = scene.as !== "";
      if (all)
        return heads.map((head) =>
          fromWhole(all.weights.data.subarray(head * n * m, (head + 1) * n * m), n, m, shares),
        );
    }
    return Promise.all(heads.map((head) => this.whole(scene.input.number, named(head), n, m)));
  }

  private async whole(input: number, head: string, n: number, m: number): Promise<HeadRows> {
    const shares = this.as() !== "";
    if (n * m <= LARGEST_ANSWER) return fromWhole((await this.shown("rows", input, head)).weights.data, n, m, shares);
    const all = new Float32Array(n * m);
    const step = Math.max(1, Math.floor(LARGEST_ANSWER / m));
    for (let first = 0; first < n; first += step) {
      const last = Math.min(n, first + step) - 1;
      all.set((await this.shown("rows", input, head, `${first}-${last}`)).weights.data, first * m);
    }
    return fromWhole(all, n, m, shares);
  }
}

/** Tell whether edges hold every weight exactly. */
export function isExact(edges: Edges): boolean {
  return edges.index === null && edges.weight.data instanceof Float32Array;
}

export function placeOf(scene: Scene, layer: number): number {
  return scene.edges.layers.indexOf(layer);
}

export function tokensOf(scene: Scene, stream: string): TokenInfo[] {
  return tokensOfStream(scene.input, stream);
}
