// A measured design that was picked in a plot or a table: what it is, and the limits that it obeys.

import { valueWords } from "./design.js";
import { byId, el, replace } from "./dom.js";
import { certain, rounded, short } from "./numbers.js";
import { labelled } from "./plot.js";

export class PickedPanel {
  constructor(state) {
    this.state = state;
    this.id = null;
  }

  pick(id) {
    this.id = id;
    this.#show();
    byId("picked").scrollIntoView({ block: "nearest" });
  }

  update(answers) {
    this.answers = answers;
    if (this.id !== null) this.#show();
  }

  #show() {
    const { problem, evaluations } = this.answers;
    const found = evaluations.find((e) => e.id === this.id);
    byId("picked").hidden = !found;
    if (!found) return;
    const close = el("button", { type: "button", onclick: () => { this.id = null; byId("picked").hidden = true; } }, "Close");
    const point = problem.variables.map((v, i) => `${v.name} ${valueWords(v, found.point[i])}${v.unit ? ` ${v.unit}` : ""}`).join(", ");
    const lines = [el("p", {}, el("strong", {}, `Evaluation ${found.id}`), ` at ${point}.`)];
    if (found.state !== "complete") lines.push(el("p", { class: "worse" }, found.failure ?? found.state));
    else {
      lines.push(el("p", {}, problem.outputs.map((name, j) => `${labelled(name, problem.units[name])} ${certain(found.outputs[j], 0)}`).join(", ")));
      lines.push(el("p", {}, problem.obeys(found.outputs, this.state.thresholds) ? "It obeys the present limits." : `It breaks ${this.#broken(found)}.`));
    }
    const go = found.state === "complete" ? el("button", { type: "button", onclick: () => this.state.set(this.#limits(found)) }, "Go to the strictest limits that it obeys") : null;
    replace(byId("picked"), ...lines, el("div", { class: "buttons" }, go, close));
  }

  #broken(found) {
    const { problem } = this.answers;
    const slacks = problem.slacks(found.outputs, this.state.thresholds);
    return problem.requirements.flatMap((r, i) => (slacks[i] < -problem.tolerance(r.constraint) ? [`${r.constraint.name} by ${short(-slacks[i], 3)}`] : [])).join(", ");
  }

  // For each limit the strictest value within its range that the design obeys; the most relaxed where it obeys none.
  #limits(found) {
    return this.answers.placed(this.state.problem.preset("relaxed"), []).some((e) => e.id === found.id) ? this.#strictest(found) : this.state.problem.preset("relaxed");
  }

  #strictest(found) {
    const { problem } = this.answers;
    const all = problem.movable.map((_, i) => i);
    const own = this.answers.placed(problem.preset("relaxed"), all).find((e) => e.id === found.id);
    return own.limits.map((value, i) => {
      const { low, high, sign } = problem.movable[i];
      const step = rounded((high - low) / 1e4, high - low);
      const outwards = sign * Math.ceil((sign * value) / step) * step; // Rounding must not make a limit stricter than what was measured.
      return Math.min(Math.max(Number(outwards.toPrecision(10)), low), high);
    });
  }
}
