// The trade-offs of all limits beside each other, on one scale of the objective, the dearest limit first.

import { byId, el, replace, svg } from "./dom.js";
import { Pointer } from "./hover.js";
import { certain, rounded, short, spread } from "./numbers.js";
import { axes, band, labelled, line, padded } from "./plot.js";
import { byPrice, priceWords } from "./sentences.js";

export class MultiplesPicture {
  constructor(state) {
    this.state = state;
    this.figures = state.problem.movable.map((constraint, index) => this.#figure(constraint, index));
    this.insight = null;
  }

  #figure(constraint, index) {
    const root = svg("svg", { class: "small" });
    const words = el("span");
    const figure = el("figure", { "data-multiple": constraint.name }, el("figcaption", {}, `${constraint.name} `, words), root);
    new Pointer(root, (px, py) => this.#under(index, px, py), () => {}, (limits) => {
      this.state.moved = index;
      this.state.set(limits);
    });
    return { figure, root, words, plot: null };
  }

  // Old curves stay, and are marked as such, until those of the present limits are known.
  update(answers, answer, insight) {
    byId("multiples-section").hidden = this.figures.length < 2;
    const known = Boolean(insight?.curves);
    byId("multiples").classList.toggle("stale", !known);
    byId("multiples").setAttribute("aria-busy", String(!known));
    if (!known || insight === this.insight) return;
    Object.assign(this, { answers, answer, insight });
    this.draw();
  }

  // The limits in the order in which they are shown.
  get order() {
    const paid = byPrice(this.state.problem, this.insight.prices);
    return [...paid, ...this.figures.map((_, i) => i).filter((i) => !paid.includes(i))];
  }

  draw() {
    if (!this.insight) return;
    const { problem } = this.state;
    const shown = this.order.map((i) => this.figures[i].figure);
    const place = byId("multiples");
    if (shown.some((figure, i) => place.children[i] !== figure)) replace(place, ...shown);
    const met = this.insight.curves.map((points) => points.filter((p) => p.answer.status !== "unreachable"));
    place.hidden = !met.some((points) => points.length);
    byId("multiples-none").hidden = !place.hidden;
    const range = padded(met.flat().flatMap(({ answer: { mean, std } }) => [mean[0] - std[0], mean[0] + std[0]]), 0.06, this.answers.visible);
    this.figures.forEach((figure, i) => {
      const constraint = problem.movable[i];
      figure.words.textContent = priceWords(problem, constraint, this.insight.prices[i]);
      const plot = axes(figure.root, {
        x: { label: labelled(constraint.sign > 0 ? "≤" : "≥", constraint.unit), low: constraint.low, high: constraint.high },
        y: { label: "", ...range },
        margin: { left: 44, top: 6, right: 8, bottom: 30 },
        description: `Best ${problem.objective.name} along the limit of ${constraint.name}: ${priceWords(problem, constraint, this.insight.prices[i])}.`,
      });
      const at = (p, k) => [plot.x(p.limit), Math.min(Math.max(plot.y(p.answer.mean[0] + k * p.answer.std[0]), plot.top), plot.bottom)];
      plot.add(band(met[i].map((p) => at(p, 2)), met[i].map((p) => at(p, -2)), "band"), line(met[i].map((p) => at(p, 0)), "curve"));
      const now = plot.x(Math.min(Math.max(this.answer.thresholds[i], constraint.low), constraint.high));
      plot.add(svg("path", { class: "now", d: `M${now} ${plot.top}V${plot.bottom}` }));
      Object.assign(figure, { plot, met: met[i], at });
    });
  }

  #under(index, px, py) {
    const { plot, met, at } = this.figures[index];
    if (!plot || px < plot.left - 4 || px > plot.right + 4) return null;
    const { low, high } = this.state.problem.movable[index];
    const value = rounded(low + ((px - plot.left) / (plot.right - plot.left)) * (high - low), high - low);
    const go = this.state.thresholds.with(index, Math.min(Math.max(value, low), high));
    const point = met.find((p) => Math.abs(plot.x(p.limit) - px) < (plot.right - plot.left) / 20);
    if (!point) return { words: short(value), px, py, go };
    const { mean, std } = point.answer;
    const [x, y] = at(point, 0);
    return { words: `${short(point.limit)}: ${this.state.problem.objective.name} ${certain(mean[0], std[0])}${spread(mean[0], std[0])}`, px: x, py: y, go };
  }

  // The numbers behind the pictures, for export.
  numbers() {
    const { movable, objective } = this.state.problem;
    const rows = (this.insight?.curves ?? []).flatMap((points, i) =>
      points.map(({ limit, answer }) => [movable[i].name, limit, ...(answer.status === "unreachable" ? [null, null] : [answer.mean[0], answer.std[0]])]),
    );
    return { names: ["limit", "value", labelled(objective.name, objective.unit), "deviation"], rows };
  }
}
