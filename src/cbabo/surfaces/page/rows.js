// One row for each limit: where it stands, what is predicted of its output, the room left, what relaxing it gains, and what is
// intended with it. A slider stays within the range of its limit; the number field and the address take any limit.

import { byId, el, replace, say } from "./dom.js";
import { certain, rounded, short, spread, stated, withUnit } from "./numbers.js";
import { sign } from "./plot.js";
import { isMeasured, priceSentence, priceWords, reachSentence, resolution, roomWords } from "./sentences.js";
import { term } from "./terms.js";

const STEPS = 1000;
const INTENTS = ["tighten", "lock", "loosen"];

export class LimitRows {
  constructor(state) {
    this.state = state;
    const { problem } = state;
    this.rows = problem.constraints.map((constraint) => new Row(constraint, problem.movable.indexOf(constraint), state));
    this.heads = { predicted: term("predicted output", "predicted"), measured: term("measured output", "measured") };
    const names = ["", "limit", "", "", el("span", {}, ...Object.values(this.heads)), "room left", term("relaxing it", "price"), "intent"];
    const heads = names.map((name, i) => el("span", { role: "columnheader", class: `c${i}` }, name || el("span", { class: "hidden" }, ["standing", "", "value", "slider"][i])));
    replace(byId("rows"), el("div", { class: "limit head", role: "row" }, ...heads), ...this.rows.map((row) => row.element));
    for (const button of document.querySelectorAll("[data-preset]")) {
      button.onclick = () => state.set(problem.preset(button.dataset.preset));
    }
    byId("undo").onclick = () => state.undo();
    byId("redo").onclick = () => state.redo();
  }

  // The limits have moved; what is predicted of them follows.
  update() {
    for (const row of this.rows) if (row.index >= 0) row.show(this.state.thresholds[row.index]);
    byId("undo").disabled = this.state.past.length === 0;
    byId("redo").disabled = this.state.future.length === 0;
  }

  // standings: of all requirements; insight: prices and reach for exactly these limits, or null while they are not known.
  predict(standings, answer, insight) {
    byId("rows").classList.toggle("unmet", answer.status === "unreachable");
    this.heads.predicted.hidden = isMeasured(answer);
    this.heads.measured.hidden = !isMeasured(answer);
    for (const row of this.rows) {
      const own = standings.filter((s) => s.constraint.name === row.constraint.name);
      row.predict(own.reduce((worst, s) => (s.slack < worst.slack ? s : worst)));
      if (row.index >= 0) row.explain(insight);
    }
    const notes = [];
    if (insight?.source === "page") notes.push("Prices and reach are differences of this page’s own approximate answers.");
    if (answer.status === "unreachable") notes.push("In italics: outputs of the design that comes closest.");
    say(byId("prices-note"), notes.join(" "));
  }
}

class Row {
  // index: among the limits that may move; -1 for a fixed one.
  constructor(constraint, index, state) {
    Object.assign(this, { constraint, index, state, problem: state.problem });
    const { name, sense, unit, outputs } = constraint;
    this.mark = el("span", { class: "mark", role: "cell" });
    this.note = el("small", { class: "of" });
    this.output = el("span", { class: "output", role: "cell" });
    this.room = el("span", { class: "room", role: "cell" });
    this.price = el("span", { class: "price", role: "cell" });
    this.several = outputs.length > 1 || outputs[0] !== name;
    this.element = el(
      "div",
      { class: "limit", role: "row", "data-limit": name },
      this.mark,
      el("span", { class: "name", role: "rowheader", title: name }, el("strong", {}, name), this.note),
      el("span", { class: "bound", role: "cell" }, el("span", { class: "relation" }, sense === "<=" ? "≤" : "≥"), this.#field(), el("small", { class: "unit", title: unit }, unit)),
      el("span", { class: "slide", role: "cell" }, ...this.#slider()),
      this.output,
      this.room,
      this.price,
      el("span", { class: "intent", role: "cell" }, this.#intent()),
    );
  }

  get #label() {
    return `limit of ${this.constraint.name}, ${this.constraint.sense === "<=" ? "at most" : "at least"}`;
  }

  #field() {
    const { low, high, limit, unit } = this.constraint;
    if (this.index < 0) return el("span", { class: "fixed", title: "this limit is fixed" }, stated(limit));
    const step = rounded((high - low) / STEPS, high - low) || (high - low) / STEPS;
    this.field = el("input", { type: "number", step, "aria-label": `${this.#label}${unit ? `, in ${unit}` : ""}` });
    this.field.onchange = () => {
      const value = this.field.valueAsNumber;
      this.refused = Number.isFinite(value) ? "" : "not a number: the limit stays";
      if (this.refused === "") this.state.move(this.index, value);
      else this.field.value = String(this.state.thresholds[this.index]);
      this.#remark();
    };
    return this.field;
  }

  #slider() {
    if (this.index < 0) return [el("small", { class: "note" }, "fixed")];
    const { low, high, nominal, unit } = this.constraint;
    const range = high - low;
    const { state, index } = this;
    this.slider = el("input", { type: "range", min: low, max: high, step: "any", "aria-label": this.#label });
    this.slider.oninput = () => state.move(index, rounded(Number(this.slider.value), range), false);
    this.slider.onchange = () => state.move(index, rounded(Number(this.slider.value), range));
    this.slider.onkeydown = (event) => {
      const moved = { ArrowLeft: -10, ArrowDown: -10, ArrowRight: 10, ArrowUp: 10, PageDown: -100, PageUp: 100 }[event.key];
      if (moved === undefined) return;
      event.preventDefault();
      const value = rounded(state.thresholds[index] + (event.shiftKey ? moved / 10 : moved) * (range / STEPS), range);
      state.move(index, Math.min(Math.max(value, low), high), true, true);
    };
    const part = (name) => el("i", { class: name });
    this.track = { far: part("far"), nominal: part("nominal"), whisker: part("whisker"), mean: part("mean") };
    this.#place(this.track.nominal, nominal);
    this.slider.title = `from ${withUnit(low, unit)} to ${withUnit(high, unit)}, nominal ${withUnit(nominal, unit)}`;
    const ends = el("small", { class: "ends", "aria-hidden": "true" }, el("span", {}, short(low)), el("span", {}, short(high)));
    return [el("span", { class: "track", "aria-hidden": "true" }, ...Object.values(this.track)), this.slider, ends];
  }

  #intent() {
    const { state, index, constraint } = this;
    if (index < 0) return "";
    const choose = el("select", { "aria-label": `intent of ${constraint.name}` }, ...INTENTS.map((intent) => el("option", { value: intent }, intent)));
    choose.value = state.intents[index];
    choose.onchange = () => (state.intents[index] = choose.value);
    return choose;
  }

  // Where a value lies on the track, in per cent, no further than its ends.
  #at(value) {
    const { low, high } = this.constraint;
    return 100 * Math.min(Math.max((value - low) / (high - low), 0), 1);
  }

  #place(part, value) {
    part.style.left = `${this.#at(value)}%`;
  }

  #span(part, from, to) {
    const [a, b] = [this.#at(from), this.#at(to)];
    part.style.left = `${Math.min(a, b)}%`;
    part.style.width = `${Math.abs(b - a)}%`;
  }

  show(value) {
    if (value === this.shown) return;
    this.shown = value;
    if (document.activeElement !== this.field) this.refused = "";
    this.slider.value = value;
    this.slider.setAttribute("aria-valuetext", withUnit(value, this.constraint.unit, 5));
    if (this.field.valueAsNumber !== value) this.field.value = String(Number(value.toPrecision(12)));
    this.#remark();
  }

  // Say where a limit lies outside its range, or was not understood.
  #remark() {
    const { low, high } = this.constraint;
    const outside = this.problem.beyond(this.constraint, this.state.thresholds[this.index]) > 0;
    this.remark = this.refused || (outside ? `outside ${short(low)} to ${short(high)}` : "");
    this.element.classList.toggle("outside", this.remark !== "");
    this.#noted();
  }

  #noted() {
    say(this.note, this.remark || (this.several && this.governing ? `by ${this.governing}` : ""));
  }

  predict(standing) {
    const { mean, std } = standing;
    if (this.standing !== standing.standing) {
      this.element.classList.remove(this.standing);
      this.element.classList.add((this.standing = standing.standing));
      replace(this.mark, sign(this.standing), el("span", { class: "hidden" }, this.standing));
    }
    this.governing = standing.name;
    if (this.several) this.#noted();
    const floor = resolution(this.constraint);
    say(this.output, `${certain(mean, std > 0 ? Math.max(std, floor) : 0)}${spread(mean, std, floor)}`);
    say(this.room, roomWords(standing));
    if (this.index < 0) return;
    this.#place(this.track.mean, mean);
    this.#span(this.track.whisker, mean - 2 * std, mean + 2 * std);
  }

  explain(insight) {
    const price = insight?.prices[this.index];
    const reach = insight?.reach[this.index];
    this.element.classList.toggle("waiting", !insight);
    if (!insight) return;
    const { constraint } = this;
    say(this.price, priceWords(this.problem, constraint, price));
    this.price.classList.toggle("paid", price?.value > 0);
    this.price.title = `${priceSentence(this.problem, constraint, price, insight.source)} ${reachSentence(constraint, reach)}`;
    const strictest = reach?.strictest ?? constraint.relaxed;
    this.#span(this.track.far, constraint.strictest, strictest);
    this.element.classList.toggle("conflicting", Boolean(insight.conflict?.limits.includes(this.index)));
  }
}
