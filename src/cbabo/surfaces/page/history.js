// The study's history: evaluations in their order, what failed why, and how well the model knows what was measured.

import { byId, el, replace, svg, table } from "./dom.js";
import { decoded, percent, text } from "./numbers.js";
import { axes, dots, key, labelled, line, padded } from "./plot.js";

export class HistoryPanel {
  // answers: the Answers; thresholds: the present limits.
  update(answers, thresholds) {
    const { problem, evaluations, measured } = answers;
    const good = new Set(measured.filter((e) => problem.obeys(e.outputs, thresholds)).map((e) => e.id));
    const values = measured.map((e) => e.outputs[0]).toSorted((a, b) => a - b);
    const middle = values.slice(0, Math.ceil(values.length * 0.98)); // a few very bad ones would flatten the rest
    const shown = padded(problem.goal > 0 ? middle : values.slice(values.length - middle.length));
    const last = Math.max(1, ...evaluations.map((e) => e.id));
    const failed = evaluations.filter((e) => e.state === "failed");
    const plot = axes(byId("timeline"), {
      x: { label: "evaluation", low: 0, high: last + 1 },
      y: { label: labelled(problem.objective.name, problem.objective.unit), ...shown },
      description: `${evaluations.length} evaluations, ${good.size} obey the present limits, ${failed.length} failed.`,
    });
    const inside = (e) => e.outputs[0] >= shown.low && e.outputs[0] <= shown.high;
    const place = (e) => [plot.x(e.id), plot.y(e.outputs[0])];
    plot.add(dots(measured.filter((e) => inside(e) && !good.has(e.id)).map(place), "dim"));
    plot.add(dots(measured.filter((e) => inside(e) && good.has(e.id)).map(place), "good"));
    plot.add(line(bestSoFar(measured.filter((e) => good.has(e.id)), problem.goal, last).map(([id, v]) => [plot.x(id), plot.y(v)]), "curve"));
    const cross = (x, y) => `M${x - 3} ${y - 3}l6 6m0 -6l-6 6`;
    plot.add(svg("path", { class: "cross", d: failed.map((e) => cross(plot.x(e.id), plot.bottom - 6)).join("") }));
    replace(
      byId("history-key"),
      key("good", `obey the present limits (${good.size})`),
      key("dot", `break one (${measured.length - good.size})`),
      key("line", "best so far"),
      failed.length ? el("span", {}, el("span", { class: "worse" }, "×"), `failed (${failed.length})`) : null,
      when(evaluations),
    );
    this.#failures(failed);
  }

  #failures(failed) {
    const reasons = new Map();
    for (const e of failed.toReversed()) reasons.set(e.failure, [...(reasons.get(e.failure) ?? []), e.id]);
    const rows = [...reasons].map(([reason, ids]) => [String(ids.length), ids.slice(0, 8).join(", ") + (ids.length > 8 ? ", …" : ""), reason]);
    replace(byId("failures"), rows.length ? table("Failures by reason", ["times", "evaluations", "reason"], rows) : null);
  }
}

// From when to when, and how long one took.
function when(evaluations) {
  const begun = evaluations.map((e) => e.started).filter((t) => t !== null);
  if (!begun.length) return null;
  const times = evaluations.map((e) => e.seconds).filter((t) => t !== null);
  const at = (t) => new Date(1000 * t).toISOString().slice(0, 16).replace("T", " ");
  const each = times.length ? `, ${text(times.reduce((sum, t) => sum + t, 0) / times.length, 2)} s each` : "";
  return el("span", {}, `${at(Math.min(...begun))} to ${at(Math.max(...begun))} UTC${each}`);
}

function bestSoFar(good, goal, last) {
  const steps = [];
  let best = null;
  for (const e of good) {
    if (best !== null && goal * e.outputs[0] >= goal * best) continue;
    if (best !== null) steps.push([e.id, best]);
    best = e.outputs[0];
    steps.push([e.id, best]);
  }
  return best === null ? [] : [...steps, [last, best]];
}

// quality: as the document states it.
export function showQuality(problem, quality) {
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
