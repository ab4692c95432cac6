// How does the page name layout methods and times?
import * as wire from "../../source/wire";

export const METHODS: Readonly<Record<string, string>> = wire.METHODS;

export function took(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
