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
}

const KEPT = 48;

export class Store {
  private answers = new Map<string, Promise<unknown>>();

  constructor(private readonly source: Source) {}

  ask<K extends keyof Answers>(kind: K, ...rest: (string | number)[]): Promise<Answers[K]> {
    const path = [kind, ...rest].join("/");
    let answer = this.answers.get(path) as Promise<Answers[K]> | undefined;
    if (!answer) {
      answer = this.source.get(path).then((bytes) => decode<Answers[K]>(bytes));
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
    const [input, edges] = await Promise.all([
      this.ask("input", number),
      this.ask("edges", number, tower.name, ...which),
    ]);
    return { input, tower, edges };
  }

  /** Load the exact rows of some heads of a layer. */
  async exact(scene: Scene, layer: LayerInfo, heads: number[], named: (head: number) => string): Promise<HeadRows[]> {
    const place = placeOf(scene, layer.layer);
    const [n, m] = [scene.edges.n[place], scene.edges.m[place]];
    if (scene.edges.weight.data instanceof Float32Array)
      return heads.map((head) => fromEdges(scene.edges, place, head));
    if (heads.length > 2 && layer.heads * n * m <= LARGEST_ANSWER) {
      // A server sends a whole layer faster; a saved page has single rows only.
      const all = await this.ask("layer", scene.input.number, scene.tower.name, layer.layer).catch(() => null);
      if (all) return heads.map((head) => fromWhole(all.weights.data.subarray(head * n * m, (head + 1) * n * m), n, m));
    }
    return Promise.all(heads.map((head) => this.whole(scene.input.number, named(head), n, m)));
  }

  private async whole(input: number, head: string, n: number, m: number): Promise<HeadRows> {
    if (n * m <= LARGEST_ANSWER) return fromWhole((await this.ask("rows", input, head)).weights.data, n, m);
    const all = new Float32Array(n * m);
    const step = Math.max(1, Math.floor(LARGEST_ANSWER / m));
    for (let first = 0; first < n; first += step) {
      const last = Math.min(n, first + step) - 1;
      all.set((await this.ask("rows", input, head, `${first}-${last}`)).weights.data, first * m);
    }
    return fromWhole(all, n, m);
  }
}

export function placeOf(scene: Scene, layer: number): number {
  return scene.edges.layers.indexOf(layer);
}

export function tokensOf(scene: Scene, stream: string): TokenInfo[] {
  return tokensOfStream(scene.input, stream);
}
