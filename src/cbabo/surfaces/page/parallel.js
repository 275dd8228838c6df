// Parallel coordinates of all measured designs: one line for each, one axis for each output and variable. Dragging along an axis
// keeps the designs between two values; the same filter as the table's.

import { shareOf } from "./design.js";
import { byId, svg } from "./dom.js";
import { short } from "./numbers.js";

const [ABOVE, BELOW, SIDE] = [46, 18, 34];

export class ParallelPicture {
  // evaluations: the EvaluationsPanel, which knows what is filtered.
  constructor(problem, evaluations, pick) {
    Object.assign(this, { problem, evaluations, pick, drag: null });
    const root = byId("parallel");
    root.addEventListener("pointerdown", (event) => this.#begin(event));
    root.addEventListener("pointermove", (event) => this.#move(event));
    root.addEventListener("pointerup", (event) => this.#end(event));
    root.addEventListener("pointercancel", () => (this.drag = null));
  }

  update(answers, answer) {
    Object.assign(this, { answers, answer });
    this.draw();
  }

  draw() {
    if (!this.answers) return;
    const root = byId("parallel");
    const [width, height] = [root.clientWidth || 900, root.clientHeight || 280];
    this.height = height;
    this.axes = this.#axes();
    const step = (width - 2 * SIDE) / Math.max(this.axes.length - 1, 1);
    this.axes.forEach((axis, i) => (axis.x = SIDE + i * step));
    root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    root.setAttribute("role", "img");
    const shown = this.evaluations.shown.filter((e) => e.state === "complete");
    root.setAttribute("aria-label", `Parallel coordinates of ${this.answers.measured.length} measured designs, of which the filter shows ${shown.length}; the table below has the numbers.`);
    const kept = new Set(shown.map((e) => e.id));
    const lines = (some, className) => svg("path", { class: className, d: some.map((e) => this.#path(e)).join("") });
    const unmet = this.answer.status === "unreachable";
    root.replaceChildren(
      lines(this.answers.measured.filter((e) => !kept.has(e.id)), "strand away"),
      lines(this.answers.measured.filter((e) => kept.has(e.id)), "strand"),
      unmet ? svg("g", {}) : svg("path", { class: "strand own", d: this.#path({ outputs: this.answer.mean, point: this.answer.point }) }),
      ...this.axes.map((axis, i) => this.#axis(axis, i, step)),
    );
  }

  #axes() {
    const { problem, answers } = this;
    const outputs = problem.outputs.map((name, j) => {
      const values = answers.measured.map((e) => e.outputs[j]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const share = (value) => Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
      return { name, low: short(low, 3), high: short(high, 3), at: (e) => share(e.outputs[j]), value: (s) => low + s * (high - low) };
    });
    const variables = problem.variables.map((v, i) => ({
      name: v.name,
      low: v.type === "categorical" ? v.values[0] : short(v.low, 3),
      high: v.type === "categorical" ? v.values.at(-1) : short(v.high, 3),
      at: (e) => shareOf(v, e.point[i]),
      value: v.type === "categorical" ? null : (s) => (v.log ? v.low * Math.exp(s * Math.log(v.high / v.low)) : v.low + s * (v.high - v.low)),
    }));
    return [...outputs, ...variables];
  }

  #y(share) {
    return this.height - BELOW - share * (this.height - ABOVE - BELOW);
  }

  #path(e) {
    return this.axes.map((axis, i) => `${i ? "L" : "M"}${axis.x.toFixed(1)} ${this.#y(axis.at(e)).toFixed(1)}`).join("");
  }

  #axis(axis, index, step) {
    const isEnd = index === 0 || index === this.axes.length - 1; // A name at an end has room on one side only.
    const cut = Math.max(Math.floor(((isEnd ? 1 : 2) * step - 8) / 6.5), 4);
    const words = axis.name.length > cut ? `${axis.name.slice(0, cut - 1)}…` : axis.name;
    const brush = this.evaluations.brushes.get(axis.name);
    const parts = [
      svg("path", { class: "frame", d: `M${axis.x} ${ABOVE}V${this.height - BELOW}` }),
      svg("text", { x: axis.x, y: index % 2 ? 24 : 11, "text-anchor": index === 0 ? "start" : index === this.axes.length - 1 ? "end" : "middle", class: "label" }, words, svg("title", {}, axis.name)),
      svg("text", { x: axis.x, y: ABOVE - 6, "text-anchor": "middle" }, axis.high),
      svg("text", { x: axis.x, y: this.height - 4, "text-anchor": "middle" }, axis.low),
    ];
    if (brush) parts.push(svg("rect", { class: "brush", x: axis.x - 7, width: 14, ...this.#extent(axis, brush) }));
    return svg("g", { "data-axis": axis.name }, ...parts);
  }

  // Where a brushed range lies.
  #extent(axis, [low, high]) {
    const places = [0, 1].map((s) => axis.value(s));
    const share = (v) => Math.min(Math.max((v - places[0]) / (places[1] - places[0] || 1), 0), 1);
    const [top, bottom] = axis.brushed ?? [this.#y(share(high)), this.#y(share(low))];
    return { y: top, height: Math.max(bottom - top, 2) };
  }

  #place(event) {
    const frame = byId("parallel").getBoundingClientRect();
    return [event.clientX - frame.left, Math.min(Math.max(event.clientY - frame.top, ABOVE), this.height - BELOW)];
  }

  #begin(event) {
    const [px, py] = this.#place(event);
    const axis = this.axes.find((a) => a.value && Math.abs(a.x - px) < 12);
    if (!axis) return;
    this.drag = { axis, from: py };
    byId("parallel").setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (!this.drag) return;
    const [, py] = this.#place(event);
    const { axis, from } = this.drag;
    if (Math.abs(py - from) < 3) return;
    const share = (y) => (this.height - BELOW - y) / (this.height - ABOVE - BELOW);
    this.evaluations.brush(axis.name, [axis.value(share(Math.max(py, from))), axis.value(share(Math.min(py, from)))]);
  }

  // A click on an axis, without dragging, takes its filter away.
  #end(event) {
    if (!this.drag) return;
    const [, py] = this.#place(event);
    if (Math.abs(py - this.drag.from) < 3) this.evaluations.brush(this.drag.axis.name, null);
    this.drag = null;
  }
}
