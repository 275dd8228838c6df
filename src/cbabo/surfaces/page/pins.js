// Proposals that are kept side by side: what differs in limits, objective and design, a name and a note each, and the way into the
// ledger. They are kept in the browser, for this study.

import { shareOf, valueWords } from "./design.js";
import { byId, el, replace } from "./dom.js";
import { offerExport } from "./export.js";
import { certain, percent, short, spread, stated } from "./numbers.js";
import { labelled } from "./plot.js";
import { statusWords } from "./sentences.js";
import { tokenForm } from "./token.js";

const KEPT = "cbabo-pins:"; // before the study's name

export class PinBoard {
  // answerAt: returns the page's answer for limits; server: or null.
  constructor(state, study, answerAt, server) {
    Object.assign(this, { state, problem: state.problem, study, answerAt, server });
    this.pins = this.#read();
    offerExport(byId("compare-tools"), `${study} proposals`, null, () => this.numbers());
    this.#show();
  }

  // Keep a proposal. answer: for its limits; note: what is known about it.
  add(answer, note = "") {
    const { thresholds, point, mean, std, probability, status } = answer;
    const used = this.pins.map((pin) => pin.name);
    const name = Array.from({ length: used.length + 1 }, (_, i) => `proposal ${i + 1}`).find((words) => !used.includes(words));
    this.pins.push({ name, note, thresholds, point, mean, std, probability, status, decided: "" });
    this.#keep();
    this.#show();
  }

  addAt(thresholds, note) {
    this.add(this.answerAt(thresholds), note);
  }

  #remove(pin) {
    this.pins = this.pins.filter((other) => other !== pin);
    this.#keep();
    this.#show();
  }

  #show() {
    const { pins, problem } = this;
    byId("compare").hidden = pins.length === 0;
    if (!pins.length) return replace(byId("pins"));
    const { objective } = problem;
    const row = (name, cells, kind = "") => el("tr", { class: kind }, el("th", { scope: "row" }, name), ...cells.map((cell, i) => this.#cell(cell, cells[0], i)));
    const met = (pin) => pin.status !== "unreachable";
    const rows = [
      row(labelled(objective.name, objective.unit), pins.map((pin) => ({ words: met(pin) ? `${certain(pin.mean[0], pin.std[0])}${spread(pin.mean[0], pin.std[0])}` : "none", value: met(pin) ? pin.mean[0] : null, std: pin.std[0] }))),
      row("probability", pins.map((pin) => ({ words: percent(pin.probability) }))),
      row("status", pins.map((pin) => ({ words: statusWords(pin) }))),
      ...problem.movable.map((c, i) => row(`${c.name} ${c.sign > 0 ? "≤" : "≥"}${c.unit && ` [${c.unit}]`}`, pins.map((pin) => ({ words: stated(pin.thresholds[i]), value: pin.thresholds[i] })), "of-limit")),
      ...problem.variables.map((v, i) => row(labelled(v.name, v.unit ?? ""), pins.map((pin) => this.#variable(v, pin.point[i], met(pin))), "of-design")),
    ];
    const heads = pins.map((pin) => el("th", { scope: "col" }, this.#head(pin)));
    const foot = el("tr", {}, el("th", { scope: "row" }, "note"), ...pins.map((pin) => el("td", {}, this.#note(pin), this.#actions(pin))));
    replace(byId("pins"), el("table", {}, el("caption", { class: "hidden" }, "Pinned proposals"), el("thead", {}, el("tr", {}, el("td"), ...heads)), el("tbody", {}, ...rows, foot)));
  }

  #variable(variable, value, met) {
    if (!met) return { words: "–" };
    const isNumber = variable.type !== "categorical";
    return { words: valueWords(variable, value), value: isNumber ? value : null, share: shareOf(variable, value) };
  }

  // A cell with its difference to the first proposal.
  #cell(cell, first, index) {
    const differs = index > 0 && cell.words !== first.words;
    const change = differs && Number.isFinite(cell.value) && Number.isFinite(first.value) ? cell.value - first.value : null;
    const words = change === null ? null : el("small", {}, ` (${change > 0 ? "+" : ""}${cell.std > 0 ? certain(change, cell.std, 3) : short(change, 3)})`);
    return el("td", { class: differs ? "number differs" : "number" }, cell.words, words);
  }

  #head(pin) {
    const field = el("input", { value: pin.name, "aria-label": "name of the proposal", maxlength: 60 });
    field.onchange = () => {
      pin.name = field.value;
      this.#keep();
    };
    return field;
  }

  #note(pin) {
    const field = el("textarea", { rows: 2, "aria-label": `note of ${pin.name}`, maxlength: 5000 }, pin.note);
    field.onchange = () => {
      pin.note = field.value;
      this.#keep();
    };
    return field;
  }

  #actions(pin) {
    const said = el("p", { class: "note", role: "status" }, pin.decided);
    const ledger = this.server ? el("button", { type: "button", disabled: pin.decided !== "", onclick: () => this.#decide(pin, said) }, "Enter into the ledger") : null;
    return el("div", {}, el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => this.state.set(pin.thresholds) }, "Go there"), ledger,
      el("button", { type: "button", "aria-label": `remove ${pin.name}`, onclick: () => this.#remove(pin) }, "Remove")), said);
  }

  async #decide(pin, said) {
    const { movable } = this.problem;
    const thresholds = Object.fromEntries(movable.map((c, i) => [c.name, pin.thresholds[i]]));
    const note = [pin.name, pin.note].filter(Boolean).join(": ");
    try {
      const made = await this.server.post("decisions", { thresholds, note });
      pin.decided = `Entered as decision ${made.number} by ${made.by}.`;
      this.#keep();
      this.#show();
    } catch (error) {
      replace(said, error.status === 401 ? tokenForm(this.server, () => this.#decide(pin, said)) : error.message);
    }
  }

  // All proposals as a table, one in each row.
  numbers() {
    const { movable, variables, objective } = this.problem;
    const names = ["proposal", "note", "status", "probability", objective.name, "deviation", ...movable.map((c) => `limit ${c.name}`), ...variables.map((v) => v.name)];
    const rows = this.pins.map((pin) => [pin.name, pin.note, pin.status, pin.probability, ...(pin.status === "unreachable" ? [null, null] : [pin.mean[0], pin.std[0]]), ...pin.thresholds, ...pin.point]);
    return { names, rows };
  }

  // What was kept for this study, unless its problem has changed since.
  #read() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT + this.study) ?? "null");
      return kept?.problem === this.#signature() ? kept.pins : [];
    } catch {
      return []; // There is no storage inside some other pages.
    }
  }

  #keep() {
    try {
      localStorage.setItem(KEPT + this.study, JSON.stringify({ problem: this.#signature(), pins: this.pins }));
    } catch {
      return; // The proposals stay until the page is left.
    }
  }

  #signature() {
    const { movable, variables, outputs } = this.problem;
    return JSON.stringify([movable.map((c) => c.name), variables.map((v) => v.name), outputs]);
  }
}
