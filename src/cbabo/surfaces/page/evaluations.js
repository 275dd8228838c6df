// All evaluations as a table that sorts and filters, and the filter that it shares with the parallel coordinates.

import { valueWords } from "./design.js";
import { byId, el, replace, say } from "./dom.js";
import { offerExport } from "./export.js";
import { certain, text } from "./numbers.js";

const MOST = 200; // rows that are shown at once
const CONDITION = /^(.+?)\s*(<=|>=|<|>|=|≤|≥)\s*(-?[\d.]+(?:e[+-]?\d+)?)$/i;
const COMPARE = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => a === b };

export class EvaluationsPanel {
  // pick: takes the number of an evaluation; changed: called when the filter has changed.
  constructor(problem, name, pick, changed) {
    Object.assign(this, { problem, pick, changed, order: { column: 0, down: false }, brushes: new Map(), shown: [] });
    const find = byId("filter");
    find.oninput = () => this.#filtered();
    byId("filter-obey").onchange = () => this.#filtered();
    byId("filter-clear").onclick = () => {
      find.value = "";
      byId("filter-obey").checked = false;
      this.brushes.clear();
      this.#filtered();
    };
    offerExport(byId("evaluations-tools"), `${name} evaluations`, null, () => this.numbers());
  }

  // answers: the Answers; thresholds: the present limits.
  update(answers, thresholds) {
    Object.assign(this, { answers, thresholds });
    this.columns ??= columnsOf(answers.problem);
    this.#filtered(false);
  }

  // Show what lies between two values of a column only; null: everything.
  brush(name, range) {
    if (range === null) this.brushes.delete(name);
    else this.brushes.set(name, range);
    this.#filtered();
  }

  #filtered(tell = true) {
    const { problem, evaluations } = this.answers;
    const obeying = byId("filter-obey").checked;
    const conditions = byId("filter").value.split(",").map((part) => part.trim()).filter(Boolean).map((part) => this.#condition(part));
    const wrong = conditions.find((condition) => typeof condition === "string");
    say(byId("filter-said"), wrong ?? "");
    const value = (e, name) => this.columns.find((column) => column.name === name).value(e);
    this.shown = evaluations.filter((e) =>
      (!obeying || (e.state === "complete" && problem.obeys(e.outputs, this.thresholds))) &&
      conditions.every((holds) => typeof holds === "string" || holds(e)) &&
      [...this.brushes].every(([name, [low, high]]) => value(e, name) >= low && value(e, name) <= high));
    this.#draw();
    if (tell) this.changed();
  }

  // What a part of the filter asks for: "stress < 4", or a word that the row contains; a text says what is wrong with it.
  #condition(part) {
    const found = CONDITION.exec(part);
    if (!found) return (e) => this.columns.some((column) => column.words(e).toLowerCase().includes(part.toLowerCase()));
    const [, name, sense, number] = found;
    const column = this.columns.find((c) => c.name.toLowerCase() === name.trim().toLowerCase());
    if (!column) return `there is no column “${name.trim()}”`;
    const holds = COMPARE[{ "≤": "<=", "≥": ">=" }[sense] ?? sense];
    return (e) => Number.isFinite(column.value(e)) && holds(column.value(e), Number(number));
  }

  #sorted() {
    const { column, down } = this.order;
    const { value } = this.columns[column];
    const known = (v) => v !== null && v !== undefined;
    return this.shown.toSorted((a, b) => {
      const [p, q] = [value(a), value(b)];
      if (!known(p) || !known(q)) return Number(known(q)) - Number(known(p)); // What is not known comes last.
      return (down ? -1 : 1) * (typeof p === "number" ? p - q : String(p).localeCompare(String(q)));
    });
  }

  #draw() {
    const { column, down } = this.order;
    const heads = this.columns.map(({ name, unit }, i) => {
      const sort = el("button", { type: "button", class: "sort", onclick: () => this.#sort(i) }, name, unit ? el("small", {}, ` ${unit}`) : null, i === column ? (down ? " ▾" : " ▴") : "");
      return el("th", { scope: "col", "aria-sort": i === column ? (down ? "descending" : "ascending") : "none" }, sort);
    });
    const rows = this.#sorted().slice(0, MOST).map((e) => el("tr", { "data-evaluation": e.id }, ...this.columns.map(({ words }, i) =>
      i === 0 ? el("td", { class: "number" }, el("button", { type: "button", class: "sort", "aria-label": `look at evaluation ${e.id}`, onclick: () => this.pick(e.id) }, String(e.id))) : el("td", { class: "number" }, words(e)))));
    const cut = this.shown.length > MOST ? `; the first ${MOST} are listed` : "";
    say(byId("filter-count"), `${this.shown.length} of ${this.answers.evaluations.length}${cut}`);
    replace(byId("evaluations-table"), el("table", {}, el("caption", { class: "hidden" }, "Evaluations"), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
  }

  #sort(column) {
    this.order = { column, down: this.order.column === column && !this.order.down };
    this.#draw();
  }

  // The rows that are shown, in full, for export.
  numbers() {
    return { names: this.columns.map((c) => c.name), rows: this.#sorted().map((e) => this.columns.map(({ value }) => value(e) ?? null)) };
  }
}

// The columns: number, state, outputs (the objective first), variables, and why it failed.
function columnsOf(problem) {
  const outputs = problem.outputs.map((name, j) => ({ name, unit: problem.units[name], value: (e) => e.outputs[j] ?? null, words: (e) => (Number.isFinite(e.outputs[j]) ? certain(e.outputs[j], 0) : "") }));
  const variables = problem.variables.map((v, i) => ({ name: v.name, unit: v.unit ?? "", value: (e) => e.point[i], words: (e) => valueWords(v, e.point[i]) }));
  return [
    { name: "evaluation", unit: "", value: (e) => e.id, words: (e) => String(e.id) },
    { name: "state", unit: "", value: (e) => e.state, words: (e) => e.state },
    ...outputs,
    ...variables,
    { name: "seconds", unit: "", value: (e) => e.seconds, words: (e) => (e.seconds === null ? "" : text(e.seconds, 3)) },
    { name: "failure", unit: "", value: (e) => e.failure, words: (e) => e.failure ?? "" },
  ];
}
