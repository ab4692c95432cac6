// How are panels of drawings, texts and tables exported? Everything keeps its place on screen.
import { css, PAPER } from "./colour";
import { Figure } from "./svg";

/** Styles that come from style sheets, which a file does not have. */
const LOOKS = ["fill", "stroke", "stroke-width", "font-size", "text-anchor", "opacity"];

export function screenFigure(root: HTMLElement, dark: boolean): string {
  const home = root.getBoundingClientRect();
  const place = (box: DOMRect) =>
    [box.left - home.left + root.scrollLeft, box.top - home.top + root.scrollTop] as const;
  const figure = new Figure(
    root.scrollWidth,
    root.scrollHeight,
    css(PAPER[dark ? "dark" : "light"]),
    dark ? "#e6e7ea" : "#1b1d22",
  );
  for (const svg of root.querySelectorAll("svg")) figure.drawing(standing(svg, ...place(svg.getBoundingClientRect())));
  for (const canvas of root.querySelectorAll("canvas")) {
    const box = canvas.getBoundingClientRect();
    figure.picture(canvas.toDataURL("image/png"), ...place(box), box.width, box.height);
  }
  for (const swatch of root.querySelectorAll<HTMLElement>("i, .aa-ramp")) {
    const { backgroundColor, backgroundImage } = getComputedStyle(swatch);
    const box = swatch.getBoundingClientRect();
    if (backgroundImage !== "none") ramp(figure, backgroundImage, ...place(box), box.width, box.height);
    else if (backgroundColor !== "rgba(0, 0, 0, 0)") figure.rect(...place(box), box.width, box.height, backgroundColor);
  }
  for (const { words, box, look } of [...lines(root), ...chosen(root)]) {
    const [x, y] = place(box);
    figure.text(x, y + 0.78 * box.height, words, {
      size: parseFloat(look.fontSize),
      fill: look.color,
      weight: Number(look.fontWeight),
      mono: look.fontFamily.includes("mono"),
    });
  }
  return figure.toString();
}

/** Copy a drawing with all its styles. */
function standing(svg: SVGSVGElement, x: number, y: number): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const [from, to] = [svg, copy].map((drawing) => [...drawing.querySelectorAll("*")]);
  to.forEach((element, at) => {
    const look = getComputedStyle(from[at]);
    for (const name of LOOKS) element.setAttribute(name, look.getPropertyValue(name));
    for (const { name } of [...element.attributes])
      if (/^(role|tabindex|aria-|data-|class)/.test(name)) element.removeAttribute(name);
    if (element.tagName === "text") element.setAttribute("class", "s");
  });
  copy.setAttribute("x", String(x));
  copy.setAttribute("y", String(y));
  return new XMLSerializer().serializeToString(copy);
}

/** Draw a colour scale from its CSS gradient. */
function ramp(figure: Figure, gradient: string, x: number, y: number, width: number, height: number): void {
  const colours = gradient.match(/rgba?\([^)]+\)/g) ?? [];
  const name = `ramp-${Math.round(x)}-${Math.round(y)}`;
  const stops = colours.map(
    (colour, at) => `<stop offset="${at / Math.max(1, colours.length - 1)}" stop-color="${colour}"/>`,
  );
  figure.drawing(`<linearGradient id="${name}">${stops.join("")}</linearGradient>`);
  figure.rect(x, y, width, height, `url(#${name})`);
}

interface Line {
  words: string;
  box: DOMRect;
  look: CSSStyleDeclaration;
}

/** Write the chosen texts of menus. */
function chosen(root: HTMLElement): Line[] {
  return [...root.querySelectorAll("select")].map((menu) => ({
    words: menu.selectedOptions[0]?.text ?? "",
    box: menu.getBoundingClientRect(),
    look: getComputedStyle(menu),
  }));
}

/** List the texts outside of drawings and menus, by the lines on screen. */
function lines(root: HTMLElement): Line[] {
  const lines: Line[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!parent || parent.closest("svg, select")) continue;
    const look = getComputedStyle(parent);
    let last: Line | undefined;
    for (const { 0: word, index } of (node.textContent ?? "").matchAll(/\S+/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const box = range.getBoundingClientRect();
      if (box.width === 0) continue;
      const shown = look.textTransform === "uppercase" ? word.toUpperCase() : word;
      if (last && Math.abs(last.box.top - box.top) < 2) last.words += ` ${shown}`;
      else lines.push((last = { words: shown, box, look }));
    }
  }
  return lines;
}
