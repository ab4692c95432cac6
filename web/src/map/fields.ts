// What can a search say of a point besides its text? Its place, its side, and every column of the map.
import { UNIT } from "../source/wire";
import type { MapData } from "./data";

export type Searched = Pick<
  MapData,
  "points" | "queries" | "texts" | "text" | "input" | "position" | "special" | "colours"
>;

export interface Field {
  name: string;
  label: string;
  /** The values of a field of names; null for numbers. */
  names: readonly string[] | null;
  /** Get the number or the index in `names` of a point; NaN if it has none. */
  at(point: number): number;
}

export interface Limit {
  field: Field;
  sign: string;
  value: number;
}

/** List what a search can name: place and side first, then the columns; a taken name is not given twice. */
export function fieldsOf(data: Searched): Field[] {
  const own: Field[] = [
    { name: "position", label: "position of the token, from 0", names: null, at: (point) => data.position[point] },
    { name: "input", label: "number of the input, from 0", names: null, at: (point) => data.input[point] },
    { name: "special", label: "special token", names: ["no", "yes"], at: (point) => data.special[point] },
    { name: "side", label: "query or key", names: ["query", "key"], at: (point) => Number(point >= data.queries) },
  ];
  const taken = new Set(own.map(({ name }) => name));
  const columns = data.colours.filter(({ name }) => !taken.has(name));
  return [...own, ...columns.map(fieldOf)];
}

function fieldOf(column: MapData["colours"][number]): Field {
  const { name, label } = column;
  const { data } = column.values;
  if (column.kind === "name")
    return { name, label, names: column.names, at: (point) => (data[point] < column.names.length ? data[point] : NaN) };
  const { low, high, whole } = column;
  const at = (point: number) => {
    if (data[point] === UNIT) return NaN;
    const value = low + (data[point] / (UNIT - 1)) * (high - low);
    return whole ? Math.round(value) : value;
  };
  return { name, label, names: null, at };
}

const plain = (text: string): string => text.toLowerCase().replaceAll(/[\s_-]+/g, "_");

/** Find a field by its name, its label, or the first word of its label. */
export function fieldNamed(fields: readonly Field[], name: string): Field | undefined {
  const wanted = plain(name);
  return (
    fields.find((field) => plain(field.name) === wanted) ??
    fields.find((field) => plain(field.label) === wanted) ??
    fields.find((field) => plain(field.label).startsWith(`${wanted}_`))
  );
}

/** Read the value of a limit; a text says what is wrong with it. */
export function limitOf(field: Field, sign: string, text: string): Limit | string {
  if (!field.names) {
    const value = Number(text.replace("−", "-"));
    return text.trim() !== "" && Number.isFinite(value)
      ? { field, sign, value }
      : `“${field.name}” is a number; write for example ${field.name}<5`;
  }
  const wanted = plain(text);
  const whole = field.names.findIndex((name) => plain(name) === wanted);
  const starts = field.names.flatMap((name, at) => (plain(name).startsWith(wanted) ? [at] : []));
  const value = whole >= 0 ? whole : starts.length === 1 ? starts[0] : -1;
  if (value < 0) return `“${field.name}” has no value “${text}”; it has ${someNames(field)}`;
  return sign === ":" || sign === "=" || sign === "!="
    ? { field, sign, value }
    : `“${field.name}” has names, not numbers; write ${field.name}:${field.names[value]}`;
}

export function someNames({ names }: Field, most = 6): string {
  const all = names ?? [];
  return all.slice(0, most).join(", ") + (all.length > most ? ` and ${all.length - most} more` : "");
}

export function holds({ field, sign, value }: Limit, point: number): boolean {
  const own = field.at(point);
  if (sign === "<") return own < value;
  if (sign === "<=") return own <= value;
  if (sign === ">") return own > value;
  if (sign === ">=") return own >= value;
  if (sign === "!=") return !Number.isNaN(own) && own !== value;
  return own === value;
}
