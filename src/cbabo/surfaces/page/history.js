// The study's history: evaluations in their order, and what failed why.

import { byId, el, replace, svg, table } from "./dom.js";
import { Pointer } from "./hover.js";
import { certain, text } from "./numbers.js";
import { axes, dots, key, labelled, line, padded } from "./plot.js";

export class HistoryPanel {
  // pick: takes the number of an evaluation.
  constructor(pick) {
    this.pointer = new Pointer(byId("timeline"), (px, py) => this.#under(px, py), pick, () => {});
  }

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
    const seen = measured.filter(inside).map((e) => ({ id: e.id, px: plot.x(e.id), py: plot.y(e.outputs[0]), value: e.outputs[0] }));
    Object.assign(this, { seen, objective: problem.objective, rows: measured.map((e) => [e.id, e.outputs[0], good.has(e.id) ? "yes" : "no"]) });
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

  #under(px, py) {
    const near = this.seen?.filter((e) => Math.hypot(e.px - px, e.py - py) < 6).sort((a, b) => Math.hypot(a.px - px, a.py - py) - Math.hypot(b.px - px, b.py - py));
    if (!near?.length) return null;
    const { id, value } = near[0];
    return { ...near[0], words: `evaluation ${id}: ${this.objective.name} ${certain(value, 0)} ${this.objective.unit}` };
  }

  // The numbers behind the picture, for export.
  numbers() {
    return { names: ["evaluation", labelled(this.objective.name, this.objective.unit), "obeys the present limits"], rows: this.rows };
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
