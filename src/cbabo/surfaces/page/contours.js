// Lines of equal value over a grid, by marching squares.

// values: rows of numbers from below to above, null where there is none. Returns polylines [[column, row], ...] in units of cells.
export function contour(values, level) {
  const segments = [];
  for (let r = 0; r + 1 < values.length; r++) {
    for (let c = 0; c + 1 < values[r].length; c++) segments.push(...ofSquare(values, r, c, level));
  }
  return joined(segments);
}

// At most `count` round values between low and high.
export function levels(low, high, count = 6) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough * 0.999) * power;
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found;
}

function ofSquare(values, r, c, level) {
  const corners = [[c, r], [c + 1, r], [c + 1, r + 1], [c, r + 1]];
  const heights = corners.map(([x, y]) => values[y][x]);
  if (heights.includes(null)) return [];
  const crossings = [];
  for (let i = 0; i < 4; i++) {
    const [a, b] = [heights[i], heights[(i + 1) % 4]];
    if (a < level === b < level) continue;
    const share = (level - a) / (b - a);
    const [from, to] = [corners[i], corners[(i + 1) % 4]];
    crossings.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
  }
  return crossings.length === 4 ? [[crossings[0], crossings[1]], [crossings[2], crossings[3]]] : crossings.length === 2 ? [crossings] : [];
}

// Segments put end to end.
function joined(segments) {
  const left = segments.slice();
  const lines = [];
  const same = (a, b) => Math.abs(a[0] - b[0]) < 1e-9 && Math.abs(a[1] - b[1]) < 1e-9;
  while (left.length) {
    let points = left.pop();
    for (;;) {
      const i = left.findIndex(([a, b]) => [a, b].some((p) => same(p, points[0]) || same(p, points.at(-1))));
      if (i < 0) break;
      const [a, b] = left.splice(i, 1)[0];
      if (same(a, points.at(-1))) points = [...points, b];
      else if (same(b, points.at(-1))) points = [...points, a];
      else if (same(a, points[0])) points = [b, ...points];
      else points = [a, ...points];
    }
    lines.push(points);
  }
  return lines;
}
