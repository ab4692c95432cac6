// What do mouse, pen and fingers do on the map? Drag, wheel, pinch, click.
import type { Stage } from "./stage";

interface Does {
  point(head: number, at: number, x: number, y: number): void;
  click(head: number, at: number, x: number, y: number): void;
  /** The right button was clicked. */
  menu(head: number, at: number, event: PointerEvent): void;
}

/** A press that moves less than this is a click. */
const SLIP = 4;

export class Hand {
  private fingers = new Map<number, { x: number; y: number }>();
  private gone = 0;
  private pressed = -1;

  constructor(
    private readonly stage: () => Stage | undefined,
    private readonly does: Does,
  ) {}

  down(event: PointerEvent): void {
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, at(event));
    this.gone = 0;
    this.pressed = event.button;
  }

  move(event: PointerEvent): void {
    const stage = this.stage();
    const now = at(event);
    const before = this.fingers.get(event.pointerId);
    if (!stage) return;
    if (!before) return this.point(stage, now);
    this.fingers.set(event.pointerId, now);
    const [dx, dy] = [now.x - before.x, now.y - before.y];
    this.gone += Math.abs(dx) + Math.abs(dy);
    if (this.fingers.size === 2) return this.pinch(stage, event.pointerId, before, now);
    if (this.gone < SLIP) return;
    const solid = stage.data?.dims === 3;
    // A drag turns a 3-D map; with Shift or the right button it moves the map.
    if (solid && !event.shiftKey && (event.buttons & 1) === 1) stage.turn(dx, dy);
    else stage.pan(dx, dy);
  }

  up(event: PointerEvent): void {
    const stage = this.stage();
    const click = (this.pressed === 0 || this.pressed === 2) && this.gone < SLIP && this.fingers.size === 1;
    this.fingers.delete(event.pointerId);
    if (!click || !stage) return;
    const { x, y } = at(event);
    const head = stage.head >= 0 ? stage.head : stage.headAt(x, y);
    const point = stage.pointAt(head, x, y);
    if (this.pressed === 0) this.does.click(head, point, x, y);
    else this.does.menu(head, point, event);
  }

  cancel(): void {
    this.fingers.clear();
  }

  leave(): void {
    if (this.fingers.size === 0) this.does.point(-1, -1, 0, 0);
  }

  /** Listen to the wheel, not passively: the browser would scroll the page otherwise. */
  wheels(element: HTMLElement): () => void {
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const { x, y } = at(event, element);
      const lines = event.deltaMode === 1 ? 24 : 1;
      const stage = this.stage();
      stage?.wheel(x, y, Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0022));
      if (stage) this.point(stage, { x, y });
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }

  private point(stage: Stage, { x, y }: { x: number; y: number }): void {
    const head = stage.head >= 0 ? stage.head : stage.headAt(x, y);
    this.does.point(head, stage.camera.scale < 44 ? -1 : stage.pointAt(head, x, y), x, y);
  }

  private pinch(stage: Stage, finger: number, before: { x: number; y: number }, now: { x: number; y: number }): void {
    const other = [...this.fingers].find(([id]) => id !== finger)?.[1];
    if (!other) return;
    const [was, is] = [
      Math.hypot(before.x - other.x, before.y - other.y),
      Math.hypot(now.x - other.x, now.y - other.y),
    ];
    if (was > 0 && is > 0) stage.wheel((now.x + other.x) / 2, (now.y + other.y) / 2, is / was);
  }
}

function at(event: MouseEvent, element = event.currentTarget as HTMLElement): { x: number; y: number } {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
