// The answer: the design, what is predicted or measured of it, and how it stands to its limits.

import { byId, el, replace, say } from "./dom.js";
import { percent, short, text, withUnit } from "./numbers.js";
import { sign } from "./plot.js";

const WORDS = { predicted: "Predicted", verified: "Verified: measured", measured: "Measured: breaks a limit", unreachable: "Unreachable" };
const IN_DOUBT = "Measured: noise leaves doubt";

export class AnswerPanel {
  constructor(problem, accept) {
    this.problem = problem;
    this.accept = accept; // takes the closest reachable limits
    this.outputs = problem.requirements.map((r) => new OutputRow(r, problem.units[r.name]));
    this.variables = problem.variables.map((v) => new VariableRow(v));
    replace(byId("outputs"), head(["", "output", "bar", "value", "", "limit", "slack"]), ...this.outputs.map((row) => row.element));
    replace(byId("design"), head(["variable", "bar", "value", "range"]), ...this.variables.map((row) => row.element));
    const { objective } = problem;
    this.objective = { value: el("span", { id: "objective" }), spread: el("small") };
    this.chance = { value: el("div", { class: "big", id: "probability" }), what: el("div", { class: "note" }) };
    this.success = el("div", { class: "note", id: "success" });
    replace(
      byId("summary"),
      el("div", {}, el("div", { class: "note" }, `${objective.name}, to ${objective.direction}`),
        el("div", { class: "big" }, this.objective.value, this.objective.spread)),
      el("div", {}, this.chance.what, this.chance.value, this.success),
    );
    byId("copy").onclick = () => {
      const named = Object.fromEntries(problem.variables.map((v, i) => [v.name, this.answer.point[i]]));
      copied(byId("copy"), JSON.stringify(named));
    };
  }

  // answer: as Answers gives it; nearest: the nearest measured design; settled: nothing moves at the moment.
  update(answer, standings, nearest, settled) {
    this.answer = answer;
    const { objective } = this.problem;
    const status = byId("status");
    if (status.dataset.status !== answer.status || status.textContent !== words(answer)) {
      status.dataset.status = answer.status;
      status.className = `badge ${answer.status}`;
      replace(status, sign(answer.status), words(answer));
    }
    say(this.objective.value, text(answer.mean[0], 5));
    say(this.objective.spread, `${answer.std[0] > 0 ? ` ± ${text(answer.std[0], 2)}` : ""} ${objective.unit}`);
    say(this.chance.what, isSure(answer) ? "all limits, as measured" : "probability that all limits are obeyed");
    say(this.chance.value, chance(answer));
    say(this.success, answer.success < 1 ? `the simulator returns with ${percent(answer.success)}` : "");
    this.#warn(answer, settled);
    this.outputs.forEach((row, i) => row.show(standings[i]));
    this.variables.forEach((row, i) => row.show(answer.point[i]));
    if (nearest) this.#near(nearest, answer.thresholds);
  }

  #warn(answer, settled) {
    const lines = (answer.warnings ?? []).map((warning) => el("p", {}, warning));
    if (answer.approximate) lines.push(el("p", {}, "Approximate: taken from solved neighbours; cbabo predict solves these limits."));
    if (answer.status === "unreachable") {
      const limits = settled ? answer.closest() : undefined;
      const line = el("p", {}, "No design is predicted to obey these limits");
      if (limits === null) line.append(", nor the most relaxed ones");
      line.append(". ");
      if (limits) line.append(`The closest that can be met: ${this.#changes(answer.thresholds, limits)}. `,
        el("button", { type: "button", id: "closest", onclick: () => this.accept(limits) }, "Go there"));
      lines.push(line);
    }
    if (lines.length || byId("warnings").childElementCount) replace(byId("warnings"), ...lines);
  }

  #changes(before, after) {
    const changed = this.problem.movable.map((c, i) => (after[i] === before[i] ? null : `${c.name} ${withUnit(after[i], c.unit)}`));
    return changed.filter((words) => words !== null).join(", ");
  }

  #near({ evaluation, distance }, thresholds) {
    const { objective } = this.problem;
    const obeyed = this.problem.obeys(evaluation.outputs, thresholds) ? "obeys these limits" : "does not obey these limits";
    say(
      byId("nearest"),
      `Nearest measured design: evaluation ${evaluation.id}, ${text(distance, 2)} away in the unit cube, ` +
        `${objective.name} ${withUnit(evaluation.outputs[0], objective.unit)}; it ${obeyed}.`,
    );
  }
}

// Short enough to be read out.
export function spoken(problem, answer, standings) {
  const count = (kind) => standings.filter((s) => s.standing === kind).map((s) => s.name);
  const violated = count("violated");
  const active = count("active");
  return (
    `${WORDS[answer.status]}. ${problem.objective.name} ${withUnit(answer.mean[0], problem.objective.unit)}, ` +
    `probability of feasibility ${percent(answer.probability)}. ` +
    `${violated.length ? `Violated: ${violated.join(", ")}. ` : ""}${active.length ? `Active: ${active.join(", ")}.` : "No limit is active."}`
  );
}

export async function copied(button, content) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(content);
    button.textContent = "Copied";
  } catch {
    window.prompt("Copy this:", content);
    return;
  }
  setTimeout(() => (button.textContent = before), 1500);
}

// Whether an answer is a design that was run, whether or not it obeys the limits.
export function isMeasured(answer) {
  return answer.status === "verified" || answer.status === "measured";
}

function words(answer) {
  return answer.status === "measured" && !isSure(answer) ? IN_DOUBT : WORDS[answer.status];
}

// Whether a design was run and its outputs are not noisy, so that its limits are known to be obeyed or broken.
function isSure(answer) {
  return isMeasured(answer) && (answer.probability === 0 || answer.probability === 1);
}

function chance(answer) {
  if (!isSure(answer)) return percent(answer.probability);
  return answer.status === "verified" ? "obeyed" : "broken";
}

class OutputRow {
  constructor(requirement, unit) {
    const c = requirement.constraint;
    this.constraint = c;
    this.bar = parts("track", "slackbar", "whisker", "mean", "bound");
    this.mark = el("span", { role: "cell" });
    this.value = el("span", { class: "number", role: "cell" });
    this.spread = el("small", { role: "cell" });
    this.limit = el("span", { class: "number", role: "cell" });
    this.word = el("span", { class: "word", role: "cell" });
    const name = c.outputs.length > 1 || c.name !== requirement.name ? `${requirement.name} (${c.name})` : c.name;
    this.element = el("div", { class: "row", role: "row" }, this.mark,
      el("span", { role: "rowheader" }, name, unit ? el("small", {}, ` ${unit}`) : null),
      el("span", { class: "bar", "aria-hidden": "true" }, ...Object.values(this.bar)), this.value, this.spread, this.limit, this.word);
  }

  show({ limit, mean, std, slack, standing }) {
    const c = this.constraint;
    const ends = c.limit === null ? [c.low, c.high] : [limit - 0.5 * c.scale, limit + 0.5 * c.scale];
    const [low, high] = [Math.min(ends[0], limit, mean - 2 * std), Math.max(ends[1], limit, mean + 2 * std)];
    const at = (v) => `${(100 * (v - low)) / (high - low)}%`;
    const span = (part, a, b) => {
      part.style.left = at(Math.min(a, b));
      part.style.width = `${(100 * Math.abs(b - a)) / (high - low)}%`;
    };
    if (this.standing !== standing) {
      this.standing = standing;
      this.element.className = `row ${standing}`;
      replace(this.mark, sign(standing));
    }
    span(this.bar.slackbar, mean, limit);
    span(this.bar.whisker, mean - 2 * std, mean + 2 * std);
    this.bar.mean.style.left = at(mean);
    this.bar.bound.style.left = at(limit);
    say(this.value, text(mean));
    say(this.spread, std > 0 ? `± ${text(std, 2)}` : "");
    say(this.limit, `${c.sign > 0 ? "≤" : "≥"} ${text(limit)}`);
    say(this.word, { slack: `slack ${text(slack, 3)}`, active: "active", violated: `over by ${text(-slack, 3)}` }[standing]);
  }
}

class VariableRow {
  constructor(variable) {
    this.variable = variable;
    this.bar = parts("track", "dot");
    this.value = el("span", { class: "number", role: "cell" });
    const { name, low, high, unit } = variable;
    this.element = el("div", { class: "row", role: "row" }, el("span", { role: "rowheader" }, name, unit ? el("small", {}, ` ${unit}`) : null),
      el("span", { class: "bar", "aria-hidden": "true" }, ...Object.values(this.bar)), this.value,
      el("small", { class: "number", role: "cell" }, variable.type === "categorical" ? `one of ${variable.values.length}` : `${short(low)} to ${short(high)}`));
    if (variable.type === "categorical") this.element.title = variable.values.join(", ");
  }

  show(value) {
    const { low, high, log, type, values } = this.variable;
    if (type === "categorical") {
      this.bar.dot.style.left = `${(100 * (values.indexOf(value) + 0.5)) / values.length}%`;
      say(this.value, value);
      return;
    }
    const shown = Math.abs(value) < 1e-7 * (high - low) ? 0 : value;
    const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    this.bar.dot.style.left = `${100 * share}%`;
    say(this.value, type === "integer" ? String(value) : text(shown, 5));
  }
}

function parts(...names) {
  return Object.fromEntries(names.map((name) => [name, el("i", { class: name })]));
}

function head(names) {
  const cells = names.map((name) =>
    name === "bar" ? el("span", { class: "bar" }) : el("span", { role: "columnheader", class: ["value", "limit", "range"].includes(name) ? "number" : "" }, name),
  );
  return el("div", { class: "row head", role: "row" }, ...cells);
}
