// The answer, which stays in sight: what it is in a sentence, its objective, its probability, and what can be done with it.

import { byId, el, replace, say } from "./dom.js";
import { certain, percent, spread } from "./numbers.js";
import { sign } from "./plot.js";
import { chanceWords, headline, isSure, statusWords } from "./sentences.js";
import { term } from "./terms.js";

const AIMS = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999];

export class AnswerPanel {
  // aims: whether the answers aim at a probability, and the study's own; null for a network, which aims at none.
  constructor(state, aim) {
    const { problem } = state;
    this.problem = problem;
    const { objective } = problem;
    this.objective = { value: el("span", { id: "objective" }), spread: el("small") };
    this.chance = { value: el("span", { class: "big", id: "probability" }), what: el("span", { class: "note" }) };
    this.success = el("span", { class: "note", id: "success" });
    this.probability = term("probability", "probability");
    replace(
      byId("summary"),
      el("div", {}, el("div", { class: "note" }, `${objective.name}, ${objective.direction}d`),
        el("div", { class: "big" }, this.objective.value, this.objective.spread)),
      el("div", {}, el("div", { class: "note" }, this.probability, this.chance.what), el("div", {}, this.chance.value, this.success, aim === null ? null : this.#risk(state, aim))),
    );
    byId("copy").onclick = () => {
      const named = Object.fromEntries(problem.variables.map((v, i) => [v.name, this.answer.point[i]]));
      copied(byId("copy"), JSON.stringify(named));
    };
  }

  #risk(state, own) {
    const values = [...new Set([...AIMS, own, state.probability ?? own])].sort((a, b) => a - b);
    const choose = el("select", { id: "risk" }, ...values.map((p) => el("option", { value: p }, `${Number((100 * p).toPrecision(6))} %${p === own ? " (the study’s)" : ""}`)));
    choose.onchange = () => state.aim(Number(choose.value) === own ? null : Number(choose.value));
    this.aim = () => (choose.value = state.probability ?? own);
    return el("label", { class: "note" }, " aim at ", choose);
  }

  // answer: as Answers gives it; deciding: the limits that bind, by name; conflict: those that cannot hold together, or null.
  update(answer, deciding, conflict) {
    this.answer = answer;
    const { objective } = this.problem;
    const status = byId("status");
    if (status.dataset.status !== answer.status || status.textContent !== statusWords(answer)) {
      status.dataset.status = answer.status;
      status.className = `badge ${answer.status}`;
      const what = { measured: "measured", verified: "verified", predicted: "predicted" }[answer.status];
      replace(status, sign(answer.status), what ? term(statusWords(answer), what) : statusWords(answer));
    }
    const unmet = answer.status === "unreachable";
    this.aim?.();
    say(this.objective.value, unmet ? "none" : certain(answer.mean[0], answer.std[0]));
    say(this.objective.spread, unmet ? "" : `${spread(answer.mean[0], answer.std[0])} ${objective.unit}`);
    this.probability.hidden = isSure(answer);
    say(this.chance.what, isSure(answer) ? "all limits, as measured" : unmet ? " of the closest design" : " that all limits are obeyed");
    say(this.chance.value, chanceWords(answer));
    say(this.success, answer.success < 1 && !unmet ? ` the simulator returns with ${percent(answer.success)}` : "");
    say(byId("sentence"), headline(this.problem, answer, deciding, conflict));
    if (answer.approximate !== this.approximate) replace(byId("kind"), answer.approximate ? term("approximate", "approximate") : null);
    this.approximate = answer.approximate;
    byId("copy").disabled = unmet;
    const lines = (answer.warnings ?? []).map((warning) => el("p", {}, warning));
    if (lines.length || byId("warnings").childElementCount) replace(byId("warnings"), ...lines);
  }
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
