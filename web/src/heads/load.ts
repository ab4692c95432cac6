// Which scores of heads are shown: with or without the sinks of each input?
import type { ComparedModels, HeadCard, HeadScores } from "../source/wire";
import type { Store } from "../desk/store";

export interface Loaded<T> {
  answer: T;
  /** Why sinks are not left out, although that was asked for; "" if it was not, or if they are. */
  why: string;
}

/** Load the scores of all heads; those with sinks where there are no others. */
export const loadScores = (store: Store, withoutSinks: boolean): Promise<Loaded<HeadScores>> =>
  either(withoutSinks && (() => store.ask("heads_without_sinks")), () => store.ask("heads"));

/** Load the card of a head in the same way. */
export const loadCard = (store: Store, head: string, withoutSinks: boolean): Promise<Loaded<HeadCard>> =>
  either(withoutSinks && (() => store.ask("card_without_sinks", head)), () => store.ask("card", head));

/** Load a comparison of models in the same way. */
export const loadComparison = (store: Store, which: string, withoutSinks: boolean): Promise<Loaded<ComparedModels>> =>
  either(withoutSinks && (() => store.ask("compare_without_sinks", which)), () => store.ask("compare", which));

async function either<T>(first: false | (() => Promise<T>), second: () => Promise<T>): Promise<Loaded<T>> {
  if (!first) return { answer: await second(), why: "" };
  try {
    return { answer: await first(), why: "" };
  } catch (error) {
    return { answer: await second(), why: error instanceof Error ? error.message : String(error) };
  }
}
