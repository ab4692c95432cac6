// How does the page name layout methods and times?
import * as wire from "../../source/wire";
import type { MapProgress } from "../../source/wire";

export const METHODS: Readonly<Record<string, string>> = wire.METHODS;

export function took(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** Get a computation that runs or waits; undefined if none does. */
export const underWay = (progress: MapProgress | undefined): MapProgress | undefined =>
  progress?.state === "running" || progress?.state === "waiting" ? progress : undefined;

/** What a button that stops a computation says: it belongs to the atlas, not to a person. */
export const STOPS = "This stops it for everybody who looks at this atlas.";

/** Say how far a computation is, or what it waits for. */
export function howFar(progress: MapProgress, counted: string): string {
  if (progress.state === "waiting")
    return progress.ahead === 1 ? "waits for 1 other computation" : `waits for ${progress.ahead} other computations`;
  return progress.seconds_left === null ? counted : `${counted}, ${took(progress.seconds_left)} left`;
}
