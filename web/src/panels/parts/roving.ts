// How does the keyboard walk a group of things? The group is one stop of Tab, and arrow keys go on inside it.
import type { Desk } from "../../desk/desk.svelte";

const STEPS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

const members = (group: Element): (HTMLElement | SVGElement)[] => [
  ...group.querySelectorAll<HTMLElement | SVGElement>("[data-stop]"),
];

function setStop(all: readonly (HTMLElement | SVGElement)[], here: HTMLElement | SVGElement | undefined): void {
  for (const member of all) member.setAttribute("tabindex", member === here ? "0" : "-1");
}

/**
 * Make a group of heads one stop of Tab: the picked head. Arrow keys pick other heads everywhere on the page, and the
 * focus follows here. `members` is read, so that the stop is set again when they change.
 */
export function followsHead(desk: Desk, ...members_: unknown[]): (group: Element) => void {
  return (group) => {
    void members_;
    const all = members(group);
    const here = all.find((member) => member.dataset["stop"] === desk.focus) ?? all[0];
    setStop(all, here);
    const focused = document.activeElement;
    if (here && focused !== here && all.includes(focused as HTMLElement)) here.focus();
  };
}

/** Make a group of things in a plane one stop of Tab; an arrow key goes to the nearest one in its direction. */
export function walksPlane(first: string, ...members_: unknown[]): (group: Element) => () => void {
  return (group) => {
    void members_;
    const all = members(group);
    const focused = all.find((member) => member === document.activeElement);
    setStop(all, focused ?? all.find((member) => member.dataset["stop"] === first) ?? all[0]);
    const walk = (event: Event) => walked(group, event as KeyboardEvent);
    group.addEventListener("keydown", walk);
    return () => group.removeEventListener("keydown", walk);
  };
}

function walked(group: Element, event: KeyboardEvent): void {
  const step = STEPS[event.key];
  const from = event.target as HTMLElement | SVGElement;
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = members(group);
  const to = nearest(from, all, step);
  if (to) {
    setStop(all, to);
    to.focus();
  }
  event.preventDefault();
  event.stopPropagation();
}

/** Get the nearest member in a direction; what lies aside counts double. */
function nearest<T extends Element>(from: Element, all: readonly T[], [right, down]: [number, number]): T | undefined {
  const middle = (element: Element) => {
    const box = element.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  };
  const start = middle(from);
  let [best, least] = [undefined as T | undefined, Infinity];
  for (const member of all) {
    const { x, y } = middle(member);
    const along = (x - start.x) * right + (y - start.y) * down;
    const aside = Math.abs((x - start.x) * down) + Math.abs((y - start.y) * right);
    if (member === from || along <= 0.5) continue;
    if (along + 2 * aside < least) [best, least] = [member, along + 2 * aside];
  }
  return best;
}
