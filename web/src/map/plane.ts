// How do the panels of all heads fill the window? Layers go down; a tall model has several blocks side by side.
import { cornerOf, onScreen, spotAt, type Camera, type Place, type Size, type Spot } from "./camera";

/** The places of all panels. The unit is the side of a plot, the square with a head's points. */
export interface Plane {
  /** Upper left corner of each head's plot. */
  corners: Place[];
  /** Size of the panel around each plot; the plot is in its middle. */
  panel: Size;
  /** Distance from one panel to the next of its block. */
  pitch: Size;
  /** Size of the whole plane, with room for names. */
  whole: Size;
  /** Side of a plot in pixels when everything is in view. */
  side: number;
  /** Whether each panel has a title above it; otherwise columns have names, once for each block. */
  titled: boolean;
  /** Upper left corners of the first plot of each layer, and of the top plot of each column. */
  lines: { at: Place; layer: number }[];
  tops: { at: Place; head: number }[];
}

/** The space between panels, in pixels. */
interface Gaps {
  title: number;
  gap: number;
  /** Above everything. */
  top: number;
}

const TITLED: Gaps = { title: 12, gap: 4, top: 2 };
const BARE: Gaps = { title: 0, gap: 3, top: 16 };
/** Smaller plots have no title, which would take a quarter of the height. */
const LEAST_TITLED = 40;
/** Room for the names of layers at the left of a block. */
const GUTTER = 30;
const EDGE = 6;
/** The largest ratio of a panel's side to its plot's. */
const STRETCH = 1.65;

interface Cells extends Size {
  gaps: Gaps;
  blocks: number;
  side: number;
}

/** Compute the largest panels for a number of blocks. */
function cellsFor(layers: number, heads: number, blocks: number, gaps: Gaps, size: Size): Cells {
  const lines = Math.ceil(layers / blocks);
  const width = ((size.width - EDGE) / blocks - GUTTER) / heads - gaps.gap;
  const height = (size.height - EDGE - gaps.top) / lines - gaps.title - gaps.gap;
  const side = Math.max(4, Math.min(width, height));
  const stretched = (room: number) => Math.max(side, Math.min(room, STRETCH * side));
  return { gaps, blocks, side, width: stretched(width), height: stretched(height) };
}

/** Find the arrangement with the largest plots; of equal ones, the one with the fewest blocks. */
function largest(layers: number, heads: number, size: Size): Cells {
  const best = (gaps: Gaps) => {
    let best = cellsFor(layers, heads, 1, gaps, size);
    for (let blocks = 2; blocks <= layers; blocks++) {
      const cells = cellsFor(layers, heads, blocks, gaps, size);
      if (cells.side > best.side) best = cells;
    }
    return best;
  };
  const titled = best(TITLED);
  return titled.side >= LEAST_TITLED ? titled : best(BARE);
}

/** Place the panels in a window; `spots` give the head and the layer's place in `layers` of each. */
export function planeFor(spots: readonly Spot[], layers: readonly number[], size: Size): Plane {
  const heads = Math.max(0, ...spots.map((spot) => spot.column)) + 1;
  const { gaps, blocks, side, width, height } = largest(layers.length, heads, size);
  const lines = Math.ceil(layers.length / blocks);
  const pitch = { width: width + gaps.gap, height: height + gaps.title + gaps.gap };
  const block = GUTTER + heads * pitch.width;
  const placeOf = ({ column, row }: Spot): Place => ({
    x: (Math.floor(row / lines) * block + GUTTER + column * pitch.width + (width - side) / 2) / side,
    y: (gaps.top + gaps.title + (row % lines) * pitch.height + (height - side) / 2) / side,
  });
  const inSides = (length: Size): Size => ({ width: length.width / side, height: length.height / side });
  const used = Math.ceil(layers.length / lines);
  return {
    corners: spots.map(placeOf),
    panel: inSides({ width, height }),
    pitch: inSides(pitch),
    whole: inSides({ width: used * block, height: gaps.top + lines * pitch.height }),
    side,
    titled: gaps.title > 0,
    lines: layers.map((layer, row) => ({ at: placeOf({ column: 0, row }), layer })),
    tops: Array.from({ length: used * heads }, (_, at) => {
      const head = at % heads;
      return { at: placeOf({ column: head, row: Math.floor(at / heads) * lines }), head };
    }),
  };
}

/** Get the camera that shows all panels in the middle of the window. */
export function fitAll({ whole, side }: Plane, size: Size): Camera {
  const middle = (length: number, room: number) => (length * side - room) / 2;
  return { scale: side, x: middle(whole.width, size.width), y: middle(whole.height, size.height) };
}

/** Get the panel of a head on screen. */
export function panelBox({ panel, corners }: Plane, camera: Camera, head: number): Place & Size {
  const plot = onScreen(camera, corners[head]);
  const [width, height] = [panel.width * camera.scale, panel.height * camera.scale];
  return { x: plot.x - (width - camera.scale) / 2, y: plot.y - (height - camera.scale) / 2, width, height };
}

/** Get the number of the head at a pixel, or −1; titles and gaps belong to the nearest panel. */
export function headAt(plane: Plane, camera: Camera, x: number, y: number): number {
  const [wide, high] = [plane.pitch.width * camera.scale, plane.pitch.height * camera.scale];
  const title = high - plane.panel.height * camera.scale;
  return plane.corners.findIndex((corner) => {
    const plot = onScreen(camera, corner);
    const [dx, dy] = [x - plot.x - camera.scale / 2, y - plot.y - camera.scale / 2 + title / 2];
    return dx >= -wide / 2 && dx < wide / 2 && dy >= -high / 2 && dy < high / 2;
  });
}

/** Get the camera that shows `to` where this one shows `from`. */
export function moved(camera: Camera, from: Place, to: Place): Camera {
  const { scale } = camera;
  return { scale, x: camera.x + (to.x - from.x) * scale, y: camera.y + (to.y - from.y) * scale };
}

/** Get the head nearest to the middle of the view. */
export function middleHead(plane: Plane, camera: Camera, size: Size): number {
  const away = plane.corners.map((corner) => {
    const plot = onScreen(camera, corner);
    return Math.hypot(
      (plot.x + camera.scale / 2 - size.width / 2) / plane.pitch.width,
      (plot.y + camera.scale / 2 - size.height / 2) / plane.pitch.height,
    );
  });
  return away.indexOf(Math.min(...away));
}

/**
 * Convert a camera to the plane of addresses, which has a line for each layer in every window. Within a plot both
 * planes are equal. While several heads are in view, the middle is moved into the nearest plot, to be found again.
 */
export function toAddress(plane: Plane, spots: readonly Spot[], camera: Camera, size: Size, head: number): Camera {
  const anchor = head >= 0 ? head : middleHead(plane, camera, size);
  const corner = plane.corners[anchor];
  const away = (middle: number) => (head >= 0 ? 0 : middle - Math.min(1, Math.max(0, middle)));
  const off = {
    x: away((camera.x + size.width / 2) / camera.scale - corner.x),
    y: away((camera.y + size.height / 2) / camera.scale - corner.y),
  };
  return moved(camera, { x: corner.x + off.x, y: corner.y + off.y }, cornerOf(spots[anchor]));
}

/** Convert the camera of an address to a camera of this window. */
export function fromAddress(plane: Plane, spots: readonly Spot[], camera: Camera, size: Size, head: number): Camera {
  const { column, row } = spotAt(camera, size.width / 2, size.height / 2);
  const away = (spot: Spot) => Math.hypot(spot.column - column, spot.row - row);
  const nearest = spots.reduce((best, spot, at) => (away(spot) < away(spots[best]) ? at : best), 0);
  const anchor = head >= 0 ? head : nearest;
  return moved(camera, cornerOf(spots[anchor]), plane.corners[anchor]);
}
