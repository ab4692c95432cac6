// How do fingers point? A tap is a click, and a long press is what hovering is for a mouse.

const LONG = 450; // ms
const SLIP = 10; // px that a resting finger may move

/** The elements that were told that a mouse is there. */
let entered: Element[] = [];

function leave(): void {
  for (const element of entered) {
    element.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse", pointerId: -1 }));
    element.dispatchEvent(new MouseEvent("mouseleave"));
  }
  entered = [];
}

/** Say to the element at a place that a mouse is there: every view shows then what it shows to a mouse. */
function point(x: number, y: number): void {
  leave();
  const element = document.elementFromPoint(x, y);
  const at = { clientX: x, clientY: y, bubbles: true, composed: true, pointerType: "mouse", pointerId: -1 };
  for (let above = element; above; above = above.parentElement) {
    above.dispatchEvent(new PointerEvent("pointerenter", { ...at, bubbles: false }));
    entered.push(above);
  }
  element?.dispatchEvent(new PointerEvent("pointermove", at));
  element?.dispatchEvent(new MouseEvent("mousemove", { clientX: x, clientY: y, bubbles: true }));
}

/** Let one finger point by a long press within an element; listen from now on. */
export function touches(root: HTMLElement): () => void {
  let pressed: { x: number; y: number; id: number } | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let held = false;
  let byTouch = false;

  const stop = () => {
    clearTimeout(timer);
    pressed = null;
  };
  const down = (event: PointerEvent) => {
    byTouch = event.pointerType === "touch";
    stop();
    held = false;
    if (byTouch) leave();
    if (!byTouch || !event.isPrimary || !inCanvas(event)) return;
    pressed = { x: event.clientX, y: event.clientY, id: event.pointerId };
    timer = setTimeout(() => {
      if (!pressed) return;
      held = true;
      point(pressed.x, pressed.y);
    }, LONG);
  };
  const move = (event: PointerEvent) => {
    if (!pressed || event.pointerId !== pressed.id) return;
    const far = Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > SLIP;
    if (far && !held) stop();
    // A finger that has pointed goes on pointing where it goes.
    else if (far) point(event.clientX, event.clientY);
  };
  /** After a long press nothing is clicked, picked or opened. */
  const swallow = (event: Event) => {
    if (!held) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const up = (event: PointerEvent) => {
    const was = pressed;
    stop();
    if (!byTouch || !inCanvas(event)) return;
    // The browser may send a click after this.
    setTimeout(() => (held = false), LONG);
    if (held) return swallowUp(event);
    // Views that pick what is under the cursor are told first where the finger was.
    if (was) point(was.x, was.y);
  };
  /** The pointer is up for those who count fingers, but as a cancelled one: it picks nothing. */
  const swallowUp = (event: PointerEvent) => {
    event.stopPropagation();
    const { pointerId, clientX, clientY, target } = event;
    const gone = { pointerId, clientX, clientY, pointerType: "touch", bubbles: true };
    target?.dispatchEvent(new PointerEvent("pointercancel", gone));
  };
  /** A finger that is lifted leaves nothing: what it pointed at stays until the next touch. */
  const stay = (event: PointerEvent) => {
    if (event.pointerType === "touch") event.stopPropagation();
  };
  const menu = (event: MouseEvent) => {
    if (byTouch && inCanvas(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const inCanvas = (event: Event) => event.target instanceof Element && event.target.closest(".aa-canvas") !== null;

  const all: [string, (event: never) => void][] = [
    ["pointerdown", down],
    ["pointermove", move],
    ["pointerup", up],
    ["pointercancel", stop],
    ["pointerleave", stay],
    ["click", swallow],
    ["contextmenu", menu],
  ];
  for (const [name, listen] of all) root.addEventListener(name, listen as EventListener, true);
  return () => {
    stop();
    for (const [name, listen] of all) root.removeEventListener(name, listen as EventListener, true);
  };
}
