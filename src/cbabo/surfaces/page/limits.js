// The sliders: one for each limit that may move. A slider stays within its range; the number field and the address take any limit.

import { byId, el, replace } from "./dom.js";
import { rounded, short, withUnit } from "./numbers.js";

const STEPS = 1000;

export class LimitsPanel {
  constructor(state) {
    this.state = state;
    this.rows = state.problem.movable.map((constraint, index) => new Row(constraint, index, state));
    replace(byId("sliders"), ...this.rows.map((row) => row.element));
    for (const button of document.querySelectorAll("[data-preset]")) {
      button.onclick = () => state.set(state.problem.preset(button.dataset.preset));
    }
    byId("undo").onclick = () => state.undo();
  }

  update() {
    this.rows.forEach((row, i) => row.show(this.state.thresholds[i]));
    byId("undo").disabled = this.state.past.length === 0;
  }
}

class Row {
  constructor(constraint, index, state) {
    this.constraint = constraint;
    const { name, sense, low, high, nominal, unit } = constraint;
    const symbol = sense === "<=" ? "≤" : "≥";
    const range = high - low;
    const step = rounded(range / STEPS, range) || range / STEPS;
    const label = `limit of ${name}, ${sense === "<=" ? "at most" : "at least"}`;
    this.slider = el("input", { type: "range", min: low, max: high, step: "any", "aria-label": label });
    this.field = el("input", { type: "number", step, "aria-label": `${label}${unit ? `, in ${unit}` : ""}` });
    this.slider.oninput = () => state.move(index, rounded(Number(this.slider.value), range), false);
    this.slider.onchange = () => state.move(index, rounded(Number(this.slider.value), range));
    this.slider.onkeydown = (event) => {
      const moved = { ArrowLeft: -10, ArrowDown: -10, ArrowRight: 10, ArrowUp: 10, PageDown: -100, PageUp: 100 }[event.key];
      if (moved === undefined) return;
      event.preventDefault();
      const value = rounded(state.thresholds[index] + (event.shiftKey ? moved / 10 : moved) * (range / STEPS), range);
      state.move(index, Math.min(Math.max(value, low), high));
    };
    this.field.onchange = () => {
      const value = Number(this.field.value);
      if (this.field.value !== "" && Number.isFinite(value)) state.move(index, value);
      this.show(state.thresholds[index], true);
    };
    const mark = el("span", { class: "nominal", title: `nominal ${withUnit(nominal, unit)}` });
    const share = (nominal - low) / range;
    mark.style.left = `${100 * share}%`;
    if (share > 0.25 && share < 0.75) mark.append(short(nominal));
    this.element = el(
      "div",
      { class: "limit" },
      el("div", { class: "line" }, el("span", { class: "name" }, name), `${symbol}`, this.field, el("span", { class: "unit" }, unit)),
      this.slider,
      el(
        "div",
        { class: "scale" },
        el("span", { class: "low" }, short(low)),
        mark,
        el("span", { class: "high" }, short(high)),
      ),
    );
  }

  // again: also where the value is the same, for the field may hold what somebody typed.
  show(value, again = false) {
    if (value === this.shown && !again) return;
    this.shown = value;
    this.slider.value = value;
    this.slider.setAttribute("aria-valuetext", withUnit(value, this.constraint.unit, 5));
    this.field.value = String(Number(value.toPrecision(6)));
  }
}
