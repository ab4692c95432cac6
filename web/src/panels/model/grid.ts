// Where are the thumbnails?

export interface Grid {
  columns: number;
  cell: { width: number; height: number };
  left: number;
  top: number;
  gap: number;
}

const LEFT = 30;
const TOP = 22;
const GAP = 5;

/** Compute the grid of thumbnails: a column for each head, as wide as fits, but large enough to click. */
export function gridFor(columns: number, rows: number, width: number, height: number): Grid {
  const room = (width - LEFT - 14) / Math.max(1, columns) - GAP;
  const fair = (height - TOP - 10) / Math.max(1, rows) - GAP;
  const wide = Math.max(34, Math.min(190, room));
  const high = Math.max(26, Math.min(wide * 1.25, Math.max(fair, wide * 0.55)));
  return { columns, cell: { width: Math.floor(wide), height: Math.floor(high) }, left: LEFT, top: TOP, gap: GAP };
}

export function cellAt(grid: Grid, row: number, column: number): { x: number; y: number } {
  return { x: grid.left + column * (grid.cell.width + grid.gap), y: grid.top + row * (grid.cell.height + grid.gap) };
}
