// The designs that obey known relations between variables: as Python's region, step by step.
//
// g: a relation in units of its range over the cube, obeyed where it is not above zero. Whether a design obeys is decided by its natural
// values; between the values of a discrete variable a relation is interpolated.

import { Formula } from "./formulas.js";
import { decoded } from "./numbers.js";

export class Region {
  // stated: the document's region; tuning: the numbers that the document shares with Python.
  constructor(stated, problem, tuning) {
    Object.assign(this, { problem, tuning: tuning.region, scale: stated.scale });
    const names = problem.columns.map(({ variable, label }) => (label === null ? variable.name : null));
    const placed = (steps) => {
      const formula = new Formula(steps);
      return { formula, columns: formula.names.map((name) => names.indexOf(name)) };
    };
    this.relations = stated.relations.map(placed);
    this.finite = stated.finite.map(placed);
    this.anchors = decoded(stated.anchors);
    this.d = names.length;
  }

  // Whether natural values obey all relations.
  holds(point) {
    const value = ({ formula, columns }) => formula.at(columns.map((c) => point[this.problem.variables.indexOf(this.problem.columns[c].variable)])).value;
    return this.relations.every((r) => value(r) <= 0) && this.finite.every((f) => Number.isFinite(value(f)));
  }

  // Relations (r) at a design, and their derivatives (r x d).
  valuesAndSlopes(x) {
    const { largest } = this.tuning;
    const J = new Float64Array(this.relations.length * this.d);
    const g = this.relations.map(({ formula, columns }, r) => {
      const { value, slopes } = formula.at(columns.map((c) => this.problem.relaxed(c, x[c])), true);
      columns.forEach((c, i) => {
        const slope = (slopes[i] * this.problem.rise(c, x[c])) / this.scale[r];
        J[r * this.d + c] = Number.isNaN(slope) ? 0 : Math.min(Math.max(slope, -largest), largest);
      });
      const scaled = value / this.scale[r];
      return Number.isNaN(scaled) ? largest : Math.min(Math.max(scaled, -largest), largest);
    });
    return { g, J };
  }

  // A legal design that obeys, close to x; anchor: a design that obeys, the nearest known one unless given.
  repaired(x, anchor = null) {
    const legal = this.#legal(x);
    if (legal.obeys) return legal.unit;
    const moved = this.#legal(this.#projected(legal.unit));
    return moved.obeys ? moved.unit : this.#towards(moved.unit, anchor ?? this.#nearest(moved.unit));
  }

  #legal(x) {
    const { point, unit } = this.problem.legal(x);
    return { unit: Float64Array.from(unit), obeys: this.holds(point) };
  }

  // Onto the most broken relation, one after the other; discrete variables stay.
  #projected(start) {
    const x = start.slice();
    for (let i = 0; i < this.tuning.projections; i++) {
      const { g, J } = this.valuesAndSlopes(x);
      const most = g.length ? Math.max(...g) : 0;
      if (most <= 0) break;
      const row = g.indexOf(most);
      const slope = Float64Array.from(x, (u, c) => {
        const s = this.problem.columns[c].variable.type === "real" ? J[row * this.d + c] : 0;
        return (u <= 0 && s > 0) || (u >= 1 && s < 0) ? 0 : s;
      });
      const length = slope.reduce((sum, s) => sum + s * s, 0);
      if (length === 0) break;
      for (let c = 0; c < this.d; c++) x[c] = Math.min(Math.max(x[c] - ((most + this.tuning.inside) / length) * slope[c], 0), 1);
    }
    return x;
  }

  #nearest(x) {
    const apart = (a) => a.reduce((sum, u, c) => sum + (u - x[c]) ** 2 + (this.#differs(c, u, x[c]) ? 2 * this.d : 0), 0);
    let best = null;
    for (let i = 0; i < this.anchors.length; i += this.d) {
      const design = this.anchors.subarray(i, i + this.d);
      const distance = apart(design);
      if (best === null || distance < best.distance) best = { design, distance };
    }
    return best.design;
  }

  #differs(c, u, v) {
    return this.problem.columns[c].variable.type !== "real" && Math.abs(u - v) > this.tuning.inside;
  }

  // On the way to a design that obeys, as near to the start as halving finds one.
  #towards(x, anchor) {
    let [low, high, found] = [0, 1, anchor];
    for (let i = 0; i < this.tuning.halvings; i++) {
      const middle = 0.5 * (low + high);
      const { unit, obeys } = this.#legal(x.map((u, c) => u + middle * (anchor[c] - u)));
      if (obeys) [found, high] = [unit, middle];
      else low = middle;
    }
    return found;
  }
}
