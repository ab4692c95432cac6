// How is an exported figure written? As SVG with real letters and lines, which needs no other file.
import type { Batch } from "./batch";
import { css } from "./colour";
import { isolated } from "./letters";

/** Escape a text, so that no token becomes markup; characters that XML forbids are replaced. */
export function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const round = (x: number): string => String(Math.round(x * 100) / 100);

/** Write a filter that reduces colours by a share. */
const paler = (share: number): string =>
  `<filter id="pale" color-interpolation-filters="sRGB"><feColorMatrix type="saturate" values="${round(1 - share)}"/></filter>`;

export interface Stroke {
  colour: string;
  width: number;
  alpha: number;
  fill?: boolean;
}

const stroke = ({ colour, width, alpha }: Stroke): string =>
  `stroke="${colour}" stroke-width="${round(width)}" stroke-opacity="${round(alpha)}" stroke-linecap="round"`;

export class Figure {
  private parts: string[] = [];

  constructor(
    readonly width: number,
    readonly height: number,
    private readonly paper: string,
    private readonly ink: string,
  ) {}

  text(
    x: number,
    y: number,
    words: string,
    look: { size?: number; anchor?: string; fill?: string; mono?: boolean; weight?: number; turn?: number } = {},
  ): void {
    const turn = look.turn ? ` transform="rotate(${look.turn} ${round(x)} ${round(y)})"` : "";
    const weight = look.weight ? ` font-weight="${look.weight}"` : "";
    this.parts.push(
      `<text x="${round(x)}" y="${round(y)}" font-size="${look.size ?? 12}" text-anchor="${look.anchor ?? "start"}" fill="${look.fill ?? this.ink}"${weight} class="${look.mono ? "m" : "s"}"${turn}>${escaped(isolated(words))}</text>`,
    );
  }

  rect(x: number, y: number, width: number, height: number, fill: string, alpha = 1): void {
    const faint = alpha < 1 ? ` fill-opacity="${round(alpha)}"` : "";
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"${faint}/>`,
    );
  }

  frame(x: number, y: number, width: number, height: number, colour: string, thick = 1): void {
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="none" stroke="${colour}" stroke-width="${thick}"/>`,
    );
  }

  circle(x: number, y: number, radius: number, look: Stroke): void {
    this.parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${round(radius)}" fill="none" ${stroke(look)}/>`);
  }

  path(points: readonly (readonly [number, number])[], look: Stroke): void {
    this.parts.push(
      `<path d="M${points.map(([x, y]) => `${round(x)} ${round(y)}`).join("L")}" fill="${look.fill ? look.colour : "none"}" ${stroke(look)}/>`,
    );
  }

  line(x0: number, y0: number, x1: number, y1: number, colour: string): void {
    this.parts.push(
      `<path d="M${round(x0)} ${round(y0)}L${round(x1)} ${round(y1)}" stroke="${colour}" stroke-opacity="0.7"/>`,
    );
  }

  /** Add pixels, for marks that are too many to draw one by one; `data` is a data: address. */
  picture(data: string, x: number, y: number, width: number, height: number, pale = 0): void {
    if (pale > 0 && !this.parts.includes(paler(pale))) this.parts.push(paler(pale));
    const filter = pale > 0 ? ` filter="url(#pale)"` : "";
    this.parts.push(
      `<image href="${data}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"${filter}/>`,
    );
  }

  /** Add another drawing, as SVG markup. */
  drawing(markup: string): void {
    this.parts.push(markup);
  }

  /** Add lines of one colour and opacity as one path. */
  lines(batch: Batch, line: (from: number, to: number) => [number, number, number, number], thick = 1.5): void {
    const path: string[] = [];
    for (let at = 0; at < batch.from.length; at++) {
      const [x0, y0, x1, y1] = line(batch.from[at], batch.to[at]);
      path.push(`M${round(x0)} ${round(y0)}L${round(x1)} ${round(y1)}`);
    }
    this.parts.push(
      `<path d="${path.join("")}" fill="none" stroke="${css(batch.colour)}" stroke-opacity="${Number(batch.alpha.toPrecision(3))}" stroke-width="${thick}"/>`,
    );
  }

  /** Add cells of one colour as one path. */
  cells(places: readonly (readonly [number, number])[], width: number, height: number, fill: string): void {
    const path = places.map(([x, y]) => `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}z`);
    this.parts.push(`<path d="${path.join("")}" fill="${fill}"/>`);
  }

  toString(): string {
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(this.width)}" height="${Math.ceil(this.height)}" viewBox="0 0 ${Math.ceil(this.width)} ${Math.ceil(this.height)}">`;
    const style = `<style>.s{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}.m{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}</style>`;
    const back = `<rect width="100%" height="100%" fill="${this.paper}"/>`;
    return `${head}${style}${back}${this.parts.join("")}</svg>\n`;
  }
}
