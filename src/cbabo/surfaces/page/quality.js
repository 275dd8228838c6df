// How well the model knows what was measured: leave-one-out predictions, calibration, and what the last audit found.

import { byId, el, replace, svg } from "./dom.js";
import { decoded, percent, text } from "./numbers.js";
import { axes, dots, labelled, line, padded } from "./plot.js";

// quality: as the document states it; audit: what the last audit found, in words, or null.
export function showQuality(problem, quality, audit) {
  byId("audit").textContent = audit ? `Last audit, ${audit}` : "The answers of this study were not audited yet: cbabo audit measures some of them at fresh limits.";
  const [observed, predicted, std] = [quality.observed, quality.predicted, quality.std].map(decoded);
  const q = quality.outputs.length;
  const figures = quality.outputs.map((name, j) => {
    const rows = quality.ids.map((_, i) => ({ seen: observed[i * q + j], said: predicted[i * q + j], std: std[i * q + j] }));
    const root = svg("svg", {});
    const figure = el("figure", {}, el("figcaption", {}, `${labelled(name, problem.units[name])} `, el("span", {}, percent(Math.max(0, quality.explained[j])))), root);
    return { figure, root, rows, name };
  });
  replace(byId("scatters"), ...figures.map((f) => f.figure));
  for (const { root, rows, name } of figures) scatter(root, rows, name);
  calibration(quality);
}

function scatter(root, rows, name) {
  const seen = rows.map((r) => r.seen).toSorted((a, b) => a - b);
  const few = Math.floor(seen.length / 100); // A few extreme values would compress the others: they are drawn at the edge.
  const range = padded(seen.slice(few, seen.length - few));
  const plot = axes(root, {
    x: { label: "measured", ...range },
    y: { label: "predicted", ...range },
    description: `${name}: predicted against measured, ${rows.length} designs.`,
  });
  plot.add(line([[plot.x(range.low), plot.y(range.low)], [plot.x(range.high), plot.y(range.high)]], "diagonal"));
  const clipped = (v) => Math.min(Math.max(plot.y(v), plot.top), plot.bottom);
  const across = (v) => Math.min(Math.max(plot.x(v), plot.left), plot.right);
  plot.add(svg("path", { class: "grid", d: rows.map((r) => `M${across(r.seen)} ${clipped(r.said - r.std)}V${clipped(r.said + r.std)}`).join("") }));
  plot.add(dots(rows.map((r) => [across(r.seen), clipped(r.said)]), "good"));
}

function calibration(quality) {
  const plot = axes(byId("calibration"), {
    x: { label: "probability", low: 0, high: 1 },
    y: { label: "share inside", low: 0, high: 1 },
    description: `Calibration of ${quality.outputs.length} outputs: ${quality.outputs
      .map((name, j) => `${name} ${text(quality.covered.at(-1)[j], 2)} inside at ${quality.levels.at(-1)}`)
      .join(", ")}.`,
  });
  plot.add(line([[plot.x(0), plot.y(0)], [plot.x(1), plot.y(1)]], "diagonal"));
  quality.outputs.forEach((name, j) => {
    const shares = quality.levels.map((level, i) => [plot.x(level), plot.y(quality.covered[i][j])]);
    const curve = line([[plot.x(0), plot.y(0)], ...shares], "coverage");
    curve.append(svg("title", {}, name));
    plot.add(curve);
  });
}

// The numbers behind the picture of the calibration, for export.
export function calibrationNumbers(quality) {
  return { names: ["probability", ...quality.outputs], rows: quality.levels.map((level, i) => [level, ...quality.covered[i]]) };
}
