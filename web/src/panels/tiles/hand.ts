// What do mouse and fingers do on the map? Drag moves, wheel and two fingers zoom, a click picks.
import type { View } from "../../tiles/view";

interface Acts {
  view: () => View;
  /** Move a view by some pixels. */
  pan(from: View, dx: number, dy: number): void;
  /** Zoom around a pixel of the stage. */
  zoom(factor: number, x: number, y: number): void;
  point(at: { x: number; y: number } | null): void;
  pick(): void;
  dragging(now: boolean): void;
}

interface Spot {
  x: number;
  y: number;
}

/** A press that moves less than this is a click. */
const STILL = 4;
/** How much one pixel of the wheel zooms. */
const WHEEL = 0.0022;

export function handFor(acts: Acts) {
  const fingers = new Map<number, Spot>();
  let start: (Spot & { view: View }) | null = null;
  let moved = false;

  const placeOf = (event: PointerEvent | WheelEvent | MouseEvent): Spot => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  function down(event: PointerEvent): void {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, placeOf(event));
    start = { ...placeOf(event), view: acts.view() };
    moved = fingers.size > 1;
  }

  function move(event: PointerEvent): void {
    const at = placeOf(event);
    if (fingers.has(event.pointerId) && fingers.size === 2) return pinch(event.pointerId, at);
    if (!start) return acts.point(at);
    if (!moved && Math.hypot(at.x - start.x, at.y - start.y) < STILL) return;
    if (!moved) acts.dragging(true);
    moved = true;
    acts.pan(start.view, at.x - start.x, at.y - start.y);
  }

  function pinch(id: number, at: Spot): void {
    const before = fingers.get(id) as Spot;
    const other = [...fingers].find(([finger]) => finger !== id)?.[1] as Spot;
    const away = (spot: Spot) => Math.hypot(spot.x - other.x, spot.y - other.y);
    fingers.set(id, at);
    if (away(before) > 1) acts.zoom(away(at) / away(before), (at.x + other.x) / 2, (at.y + other.y) / 2);
  }

  function up(event: PointerEvent): void {
    const pressed = fingers.delete(event.pointerId);
    if (fingers.size > 0) return;
    const clicked = pressed && start && !moved && event.type === "pointerup";
    start = null;
    acts.dragging(false);
    acts.point(placeOf(event));
    if (clicked) acts.pick();
  }

  return {
    down,
    move,
    up,
    leave: () => start ?? acts.point(null),
    double: (event: MouseEvent) => acts.zoom(2, placeOf(event).x, placeOf(event).y),
    wheel(event: WheelEvent): void {
      event.preventDefault();
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
      // A pinch on a touchpad comes as a wheel with Ctrl, in small steps.
      const factor = Math.exp(-pixels * (event.ctrlKey ? 4 : 1) * WHEEL);
      acts.zoom(Math.min(4, Math.max(0.25, factor)), placeOf(event).x, placeOf(event).y);
    },
  };
}
