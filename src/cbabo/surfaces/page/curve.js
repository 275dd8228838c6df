// The best objective as one limit moves, the others held. It passes through the present answer and ends where no design is
// predicted to obey the limits.

import { byId, el, replace, svg, table } from "./dom.js";
import { Pointer } from "./hover.js";
import { certain, percent, rounded, short, spread, text } from "./numbers.js";
import { axes, band, dots, key, labelled, line, padded } from "./plot.js";
import { spaced, withoutRises } from "./sweep.js";
import { Pieces, coarseFirst } from "./work.js";

const CURVE = 33;
const CURVE_BATCH = 4; // answers at a time: the surrogates are quickest with a few together

export class CurvePicture {
  constructor(state, pick) {
    this.state = state;
    this.made = null;
    this.pointer = new Pointer(byId("curve"), (px, py) => this.#under(px, py), pick, (limits) => state.set(limits));
  }

  // index: of the limit that moves; key: what the curve depends on.
  update(answers, answer, index, key, insight) {
    Object.assign(this, { answers, answer, insight });
    if (this.made?.key !== key) this.#start(index, key);
    else if (this.made.work.done) this.draw();
    else this.#moveMark();
  }

  #start(index, key) {
    const { thresholds, problem } = this.state;
    const limits = spaced(problem.movable[index], CURVE);
    const made = { key, index, limits, found: Array(CURVE).fill(null), placed: this.answers.placed(thresholds, [index]) };
    const order = coarseFirst(CURVE);
    const piece = () => {
      const next = order.splice(0, CURVE_BATCH);
      this.answers.many(next.map((i) => thresholds.with(index, limits[i]))).forEach((a, i) => (made.found[next[i]] = a));
      return order.length > 0;
    };
    this.made = made;
    made.work = new Pieces(piece, (done) => {
      this.draw();
      if (done) this.#tell();
    });
  }

  // Points from strict to relaxed: what was computed, and the present answer at its place, through which the curve goes.
  points() {
    const { index, limits, found } = this.made;
    const { goal, movable } = this.answers.problem;
    const { sign } = movable[index];
    const now = this.state.thresholds[index];
    const have = limits.map((limit, i) => ({ limit, answer: found[i] })).filter((p) => p.answer);
    if (this.answer.status === "unreachable") return withoutRises(have, goal);
    const stricter = have.filter((p) => sign * p.limit < sign * now).map((p) => {
      const better = p.answer.status !== "unreachable" && goal * p.answer.mean[0] < goal * this.answer.mean[0];
      return better ? { limit: p.limit, answer: { ...p.answer, mean: this.answer.mean, std: this.answer.std } } : p;
    });
    const relaxed = have.filter((p) => sign * p.limit > sign * now);
    return withoutRises([...stricter, { limit: now, answer: this.answer }, ...relaxed], goal);
  }

  draw() {
    const { index, placed } = this.made;
    const { problem } = this.state;
    const constraint = problem.movable[index];
    const inside = (p) => p.limit >= constraint.low && p.limit <= constraint.high;
    const points = this.points();
    const met = points.filter((p) => p.answer.status !== "unreachable" && inside(p));
    const near = met.flatMap(({ answer }) => [answer.mean[0] - 2 * answer.std[0], answer.mean[0] + 2 * answer.std[0]]);
    const range = padded(near.length ? near : this.answers.measured.map((e) => e.outputs[0]), 0.06, this.answers.visible);
    const plot = axes(byId("curve"), {
      x: { label: labelled(constraint.name, constraint.unit, constraint.sign > 0 ? "≤" : "≥"), low: constraint.low, high: constraint.high },
      y: { label: labelled(`best ${problem.objective.name}`, problem.objective.unit), ...range },
      description: this.#describe(constraint, met),
    });
    this.#shadeUnmet(plot, constraint, met);
    const clipped = (v) => Math.min(Math.max(plot.y(v), plot.top), plot.bottom);
    const at = (p, k) => [plot.x(p.limit), clipped(p.answer.mean[0] + k * p.answer.std[0])];
    plot.add(band(met.map((p) => at(p, 2)), met.map((p) => at(p, -2)), "band"));
    const seen = placed.map((e) => ({ id: e.id, px: plot.x(e.limits[0]), py: plot.y(e.objective) })).filter(({ py }) => py >= plot.top && py <= plot.bottom);
    plot.add(dots(seen.map(({ px, py }) => [px, py]), "dim"));
    plot.add(line(met.map((p) => at(p, 0)), "curve"));
    this.plot = { ...plot, clipped, seen, met, line: svg("path", { class: "now" }), here: svg("circle", { class: "here", r: 5 }) };
    plot.add(this.plot.line, this.plot.here);
    this.pointer.mark = null;
    this.#moveMark();
    if (!byId("curve-key").childElementCount) {
      replace(byId("curve-key"), key("line", "best objective"), key("band", "± 2 deviations"), key("hatch", "cannot be met"), key("dot", "measured designs"));
    }
  }

  // Where the limit cannot be met while the others stay.
  #shadeUnmet(plot, constraint, met) {
    const reach = this.insight?.reach[this.made.index]?.strictest;
    const end = reach ?? met[0]?.limit ?? constraint.relaxed;
    const [a, b] = [plot.x(constraint.strictest), plot.x(end)].sort((p, q) => p - q);
    if (b - a < 1) return;
    const height = plot.bottom - plot.top;
    const lines = [];
    for (let c = a - height; c < b; c += 8) {
      const [from, to] = [Math.max(c, a), Math.min(c + height, b)];
      if (to > from) lines.push(`M${from.toFixed(1)} ${(plot.bottom - (from - c)).toFixed(1)}L${to.toFixed(1)} ${(plot.bottom - (to - c)).toFixed(1)}`);
    }
    plot.add(svg("path", { class: "hatching", d: lines.join("") }));
    if (!met.length) plot.add(svg("text", { class: "label", x: (a + b) / 2, y: (plot.top + plot.bottom) / 2, "text-anchor": "middle" }, "cannot be met while the other limits stay"));
  }

  #moveMark() {
    if (!this.plot) return;
    const { x, top, bottom, clipped, line, here } = this.plot;
    const { low, high } = this.state.problem.movable[this.made.index];
    const value = this.state.thresholds[this.made.index];
    const now = x(Math.min(Math.max(value, low), high));
    line.setAttribute("d", `M${now} ${top}V${bottom}`);
    here.setAttribute("cx", now);
    here.setAttribute("cy", clipped(this.answer.mean[0]));
    here.setAttribute("visibility", this.answer.status === "unreachable" || value < low || value > high ? "hidden" : "visible");
  }

  // What lies under the pointer: a measured design, or a point of the curve.
  #under(px, py) {
    if (!this.plot) return null;
    const { left, right, seen, met, clipped, x } = this.plot;
    const dot = seen.find((e) => Math.hypot(e.px - px, e.py - py) < 6);
    if (dot) return { words: `evaluation ${dot.id}, measured`, px: dot.px, py: dot.py, id: dot.id };
    if (px < left - 4 || px > right + 4) return null;
    const { index } = this.made;
    const constraint = this.state.problem.movable[index];
    const share = Math.min(Math.max((px - left) / (right - left), 0), 1);
    const limit = rounded(constraint.low + share * (constraint.high - constraint.low), constraint.high - constraint.low);
    const go = this.state.thresholds.with(index, Math.min(Math.max(limit, constraint.low), constraint.high));
    const point = met.reduce((best, p) => (best === null || Math.abs(x(p.limit) - px) < Math.abs(x(best.limit) - px) ? p : best), null);
    const where = `${constraint.name} ${constraint.sign > 0 ? "≤" : "≥"} `;
    if (point === null || Math.abs(x(point.limit) - px) > (right - left) / CURVE + 6) return { words: `${where}${short(limit)}: cannot be met`, px, py, go };
    const { objective } = this.state.problem;
    const { mean, std, probability } = point.answer;
    const words = `${where}${short(point.limit)}: ${objective.name} ${certain(mean[0], std[0])}${spread(mean[0], std[0])} ${objective.unit}, ${percent(probability)}`;
    return { words, px: x(point.limit), py: clipped(mean[0]), go };
  }

  #describe(constraint, met) {
    const { objective } = this.state.problem;
    if (!met.length) return `No value of the limit of ${constraint.name} can be met while the other limits stay.`;
    const words = (p) => `${certain(p.answer.mean[0], p.answer.std[0])} ${objective.unit} at ${short(p.limit)}`;
    return `Best ${objective.name} along the limit of ${constraint.name}: from ${words(met[0])} to ${words(met.at(-1))}; the numbers are below.`;
  }

  // The numbers of the curve, as a table and for export.
  numbers() {
    const { objective, movable } = this.state.problem;
    const names = [labelled(movable[this.made.index].name, movable[this.made.index].unit), labelled(objective.name, objective.unit), "deviation", "probability"];
    const rows = this.points().map((p) => [p.limit, ...(p.answer.status === "unreachable" ? [null, null] : [p.answer.mean[0], p.answer.std[0]]), p.answer.probability]);
    return { names, rows };
  }

  #tell() {
    const { names, rows } = this.numbers();
    const shown = rows.map(([limit, mean, std, chance]) => [text(limit), mean === null ? "cannot be met" : text(mean, 5), std === null ? "" : text(std, 2), percent(chance)]);
    replace(byId("curve-numbers"), table("Trade-off", names, shown), el("span", {}));
  }
}
