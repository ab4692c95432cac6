// What is an edit on the page? The JSON of Python's edits, in a list whose lines can be switched off.
import type { EditPick } from "../source/wire";

/** An edit as Python's `to_json` writes it; fields beyond these depend on the kind. */
export interface Edit {
  edit: string;
  heads: string[];
  /** Numbers of the inputs that it is made for; without this it fits every input. */
  inputs?: number[];
  positions?: number[];
  [field: string]: unknown;
}

const KINDS = ["ablate", "scale", "mask", "pattern", "neuron", "patch"];
const HEAD = /^(all|([\w-]+\.)?L\d+(H\d+)?)$/;

export const numbersIn = (value: unknown): number[] =>
  Array.isArray(value) ? value.filter((number): number is number => Number.isInteger(number)) : [];

/** List the pairs of numbers in a field such as `edges` or `align`. */
export const pairsIn = (value: unknown): [number, number][] =>
  Array.isArray(value) ? value.map(numbersIn).filter((pair): pair is [number, number] => pair.length === 2) : [];

/** Tell whether a value can be an edit; whether the model can do it, only the model knows. */
export function isEdit(value: unknown): value is Edit {
  if (typeof value !== "object" || value === null) return false;
  const { edit, heads, inputs, positions } = value as Partial<Edit>;
  const list = (numbers: unknown) => numbers === undefined || numbersIn(numbers).length === (numbers as []).length;
  return (
    KINDS.includes(edit ?? "") &&
    Array.isArray(heads) &&
    heads.length > 0 &&
    heads.every((name) => typeof name === "string" && HEAD.test(name)) &&
    list(inputs) &&
    list(positions)
  );
}

/** Read the list of an address; undefined if it is not one, since anyone can write an address. */
export function readEdits(value: unknown): EditPick[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const lines = value as Partial<EditPick>[];
  const good = lines.every((line) => typeof line?.on === "boolean" && isEdit(line.edit));
  return good ? lines.map(({ on, edit }) => ({ on, edit }) as EditPick) : undefined;
}

export const fitsInput = (edit: Edit, input: number): boolean => edit.inputs?.includes(input) ?? true;

/** List the edits that are switched on and fit an input, as the action `edit` takes them. */
export function inForce(lines: readonly EditPick[], input: number): Edit[] {
  return lines
    .filter(({ on, edit }) => on && fitsInput(edit as Edit, input))
    .map(({ edit: { inputs: _, ...rest } }) => rest as Edit);
}

/** The number of an edit that a slider changes: its field, its value and the ends of the slider. */
export interface Dial {
  field: string;
  value: number;
  least: number;
  most: number;
}

export function dialOf(edit: Edit): Dial | null {
  const dial = (field: string, least: number, most: number): Dial | null => {
    const value = edit[field];
    if (typeof value !== "number") return null;
    return { field, value, least: Math.min(least, Math.floor(value)), most: Math.max(most, Math.ceil(value)) };
  };
  if (edit.edit === "scale") return dial("by", 0, 3);
  return edit.edit === "neuron" ? (dial("value", -8, 8) ?? dial("scale", -4, 4)) : null;
}

export const turned = (edit: Edit, { field }: Dial, value: number): Edit => ({ ...edit, [field]: value });

/** Write an edit without the number of its slider, with its fields in one order. */
function nature(edit: Edit): string {
  const dial = dialOf(edit);
  return JSON.stringify(
    Object.entries(edit)
      .filter(([name]) => name !== dial?.field)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** Get the place of an edit in the list, whatever the number of its slider; −1 if it is not there. */
export const placeIn = (lines: readonly EditPick[], edit: Edit): number =>
  lines.findIndex((line) => nature(line.edit as Edit) === nature(edit));

/** Tell whether this edit is in the list and switched on, with the same number. */
export function hasOn(lines: readonly EditPick[], edit: Edit): boolean {
  const line = lines[placeIn(lines, edit)];
  return line !== undefined && line.on && dialOf(line.edit as Edit)?.value === dialOf(edit)?.value;
}

/** Add an edit at the end; where the list has it, switch it on and take over its number. */
export function withEdit(lines: readonly EditPick[], edit: Edit): EditPick[] {
  const place = placeIn(lines, edit);
  if (place < 0) return [...lines, { on: true, edit }];
  return lines.map((line, at) => (at === place ? { on: true, edit } : line));
}

export const withoutEdit = (lines: readonly EditPick[], edit: Edit): EditPick[] =>
  lines.filter((_, at) => at !== placeIn(lines, edit));
