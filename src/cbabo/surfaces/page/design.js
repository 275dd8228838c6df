// The design of an answer: each variable within its range.

import { byId, el, replace, say } from "./dom.js";
import { short, stated, text, withUnit } from "./numbers.js";

export class DesignPanel {
  constructor(problem) {
    this.problem = problem;
    this.rows = problem.variables.map((variable) => new VariableRow(variable));
    const names = ["variable", "", "value", "range"];
    const heads = names.map((name, i) => el("span", { role: "columnheader", class: i > 1 ? "number" : "" }, name || el("span", { class: "hidden" }, "place in its range")));
    replace(byId("design"), el("div", { class: "variable head", role: "row" }, ...heads), ...this.rows.map((row) => row.element));
  }

  // nearest: the nearest measured design.
  update(answer, nearest) {
    byId("design-section").hidden = answer.status === "unreachable";
    this.rows.forEach((row, i) => row.show(answer.point[i]));
    if (nearest) this.#near(nearest, answer.thresholds);
  }

  #near({ evaluation, furthest, share }, thresholds) {
    const { objective } = this.problem;
    const obeyed = this.problem.obeys(evaluation.outputs, thresholds) ? "obeys these limits" : "does not obey these limits";
    const apart = share > 0 ? `it differs most in ${furthest}, by ${text(100 * share, 2)} % of the range` : "it is this design";
    say(byId("nearest"), `Nearest measured design: evaluation ${evaluation.id}, ${objective.name} ${withUnit(evaluation.outputs[0], objective.unit)}; it ${obeyed}; ${apart}.`);
  }
}

class VariableRow {
  constructor(variable) {
    this.variable = variable;
    this.dot = el("i", { class: "dot" });
    this.value = el("span", { class: "number", role: "cell" });
    const { name, low, high, unit, type, values } = variable;
    const range = type === "categorical" ? `one of ${values.length}` : `${short(low)} to ${short(high)}`;
    this.element = el("div", { class: "variable", role: "row" }, el("span", { role: "rowheader", class: "name", title: name }, name, unit ? el("small", {}, ` ${unit}`) : null),
      el("span", { class: "bar", role: "cell", "aria-hidden": "true" }, el("i", { class: "rail" }), this.dot), this.value, el("small", { class: "number", role: "cell" }, range));
    if (type === "categorical") this.element.title = values.join(", ");
  }

  show(value) {
    this.dot.style.left = `${100 * shareOf(this.variable, value)}%`;
    say(this.value, valueWords(this.variable, value));
  }
}

// Where a value lies in the range of its variable, from 0 to 1; labels stand side by side.
export function shareOf({ low, high, log, type, values }, value) {
  if (type === "categorical") return (values.indexOf(value) + 0.5) / values.length;
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

// A value of a variable as people read it: labels, whole numbers and stated values as they are.
export function valueWords({ low, high, log, type }, value) {
  if (type === "categorical") return value;
  if (type !== "real") return stated(value);
  if (log) return text(value, 4);
  const places = 4 - Math.floor(Math.log10(high - low)) - 1;
  if (places > 9 || Math.max(Math.abs(low), Math.abs(high)) >= 1e7) return text(value, 5);
  const shown = value.toFixed(Math.max(places, 0));
  return (Number(shown) === 0 ? shown.replace("-", "") : shown).replace("-", "−");
}
