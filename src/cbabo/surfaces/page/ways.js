// What is shown where limits cannot be met: which of them conflict, and ways out that one click takes.

import { byId, el, replace } from "./dom.js";
import { certain, percent, short } from "./numbers.js";
import { listed } from "./sentences.js";

export class WaysPanel {
  // take: called with limits to go to.
  constructor(problem, take) {
    Object.assign(this, { problem, take });
  }

  update(answer, insight) {
    const unmet = answer.status === "unreachable";
    byId("conflict").hidden = !unmet;
    if (!unmet || this.shown === (insight ?? answer)) return;
    this.shown = insight ?? answer;
    replace(byId("ways"), ...(insight ? this.#found(answer, insight) : [el("p", { class: "note" }, "Looking for what conflicts, and for ways out …")]));
  }

  #found(answer, { conflict, ways, source }) {
    const { movable } = this.problem;
    const named = (i, value) => `${movable[i].name} ${movable[i].sign > 0 ? "≤" : "≥"} ${short(value)}${movable[i].unit && ` ${movable[i].unit}`}`;
    const lines = [];
    if (!conflict) return [el("p", {}, "The solver finds no design that obeys them, though the page’s approximate answers come close: relax the limits that are marked as violated.")];
    if (!conflict.limits.length) lines.push(el("p", {}, "Even the most relaxed limits cannot be met beside those that the problem fixes."));
    else {
      const them = conflict.limits.length > 1 ? "cannot hold together" : "cannot be met by itself";
      lines.push(el("p", {}, `${listed(conflict.limits.map((i) => named(i, answer.thresholds[i])))} ${them}, whatever the other limits are: the most probable design obeys ${conflict.limits.length > 1 ? "them" : "it"} with ${percent(conflict.probability)}.`));
    }
    lines.push(...ways.map((way) => this.#way(answer, way, named)));
    if (!ways.length && conflict.limits.length) lines.push(el("p", {}, "No way out was found within the ranges of the limits."));
    lines.push(el("p", { class: "note" }, `The cheapest come first; relaxing a limit over its whole range costs 1.${source === "page" ? " Found by this page from its own approximate answers." : ""}`));
    return lines;
  }

  #way(answer, way, named) {
    const { objective } = this.problem;
    const moves = way.moved.map((i) => `${named(i, way.thresholds[i])} instead of ${short(answer.thresholds[i])}`);
    const words = `${listed(moves)}: ${objective.name} ${certain(way.objective, way.std)}${objective.unit && ` ${objective.unit}`}, cost ${short(way.cost, 2)}.`;
    return el("p", { class: "way" }, el("button", { type: "button", onclick: () => this.take(way.thresholds) }, "Take this way out"), ` ${words}`);
  }
}
