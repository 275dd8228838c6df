// All outputs of a problem with derived ones: the processes of the simulated outputs, and formulas of these and of the variables.
//
// It is asked as Surrogates are, and has a column for every output. Formulas of variables alone are exact; others are computed from the
// medians of the outputs that they use, and their deviations by moving one of these at a time by its own.

import { Formula } from "./formulas.js";
import { decoded } from "./numbers.js";

export class Composed {
  // inner: the Surrogates; stated: the document's formulas; tuning: the numbers that it shares with Python.
  constructor(inner, stated, problem, tuning) {
    Object.assign(this, { inner, problem, tuning, learned: stated.learned, derived: stated.derived });
    [this.centre, this.scale] = [decoded(stated.centre), decoded(stated.scale)];
    this.worse = stated.worse;
    this.q = problem.outputs.length;
    this.p = this.learned.length;
    this.place = problem.outputs.map((_, j) => this.learned.indexOf(j));
    this.number = problem.outputs.map((_, j) => this.derived.indexOf(j));
    const variables = problem.columns.map(({ variable, label }) => (label === null ? variable.name : null));
    this.formulas = this.derived.map((_, k) => {
      const formula = new Formula(stated.steps[k]);
      const inputs = formula.names.map((name) => {
        const variable = variables.indexOf(name);
        return variable >= 0 ? { variable } : { output: this.place[problem.outputs.indexOf(name)] };
      });
      return { formula, inputs };
    });
    this.exact = problem.outputs.map((_, j) => this.number[j] >= 0 && this.#outputsOf(this.number[j]).length === 0);
  }

  means(x, count) {
    const z = this.inner.means(x, count);
    return this.#joined(z, count, (b, k) => this.#standard(k, this.formulas[k].formula.at(this.#inputs(k, x, z, b)).value));
  }

  meansAndSlopes(x, count) {
    const { q, p } = this;
    const { d } = this.problem;
    const found = this.inner.meansAndSlopes(x, count);
    const J = new Float64Array(count * q * d);
    const z = this.#joined(found.z, count, (b, k) => {
      const { value, slopes } = this.formulas[k].formula.at(this.#inputs(k, x, found.z, b), true);
      const into = J.subarray((b * q + this.derived[k]) * d, (b * q + this.derived[k] + 1) * d);
      this.formulas[k].inputs.forEach(({ variable, output }, i) => {
        const rise = slopes && Number.isFinite(slopes[i]) ? slopes[i] / this.scale[k] : 0;
        if (variable !== undefined) into[variable] += rise * this.problem.rise(variable, x[b * d + variable]);
        else {
          const factor = rise * this.inner.rise(output, found.z[b * p + output]);
          for (let c = 0; c < d; c++) into[c] += factor * found.J[(b * p + output) * d + c];
        }
      });
      return this.#standard(k, value);
    });
    for (let b = 0; b < count; b++) {
      this.learned.forEach((j, i) => J.set(found.J.subarray((b * p + i) * d, (b * p + i + 1) * d), (b * q + j) * d));
    }
    return { z, J };
  }

  moments(x, count) {
    const size = count * this.q;
    return { z: this.means(x, count), s: this.renewed(new Float64Array(size), x, count, new Uint8Array(size).fill(1)) };
  }

  // Deviations (count x q) where they are asked for, and what is given elsewhere.
  renewed(given, x, count, asked) {
    const { q, p } = this;
    const within = new Uint8Array(count * p);
    const inner = new Float64Array(count * p);
    for (let b = 0; b < count; b++) {
      this.learned.forEach((j, i) => {
        within[b * p + i] = asked[b * q + j];
        inner[b * p + i] = given[b * q + j];
      });
      this.derived.forEach((j, k) => {
        if (asked[b * q + j]) for (const i of this.#outputsOf(k)) within[b * p + i] = 1;
      });
    }
    const own = this.inner.renewed(inner, x, count, within);
    const z = this.exact.every((e, j) => e || this.number[j] < 0) ? new Float64Array(count * p) : this.inner.means(x, count);
    const s = this.#joined(own, count, (b, k) => {
      const at = b * q + this.derived[k];
      return asked[at] ? this.#deviation(k, x, z, own, b) : given[at];
    });
    return s;
  }

  standardised(j, y) {
    const k = this.number[j];
    return k < 0 ? this.inner.standardised(this.place[j], y) : (y - this.centre[k]) / this.scale[k];
  }

  natural(j, z, s) {
    const k = this.number[j];
    if (k < 0) return this.inner.natural(this.place[j], z, s);
    return { mean: this.centre[k] + this.scale[k] * z, std: this.exact[j] ? 0 : this.scale[k] * s };
  }

  orientation(j) {
    return this.number[j] < 0 ? this.inner.orientation(this.place[j]) : 1;
  }

  #outputsOf(k) {
    return this.formulas[k].inputs.filter((i) => i.output !== undefined).map((i) => i.output);
  }

  // Natural values of what formula k depends on, at design b.
  #inputs(k, x, z, b) {
    const { d } = this.problem;
    return this.formulas[k].inputs.map(({ variable, output }) =>
      variable === undefined
        ? this.inner.natural(output, z[b * this.p + output], 0).mean
        : this.problem.relaxed(variable, x[b * d + variable]),
    );
  }

  #deviation(k, x, z, s, b) {
    const { formula, inputs } = this.formulas[k];
    const { least_std, largest } = this.tuning.formulas;
    const at = this.#inputs(k, x, z, b);
    let sum = 0;
    inputs.forEach(({ output }, i) => {
      if (output === undefined) return;
      const place = b * this.p + output;
      const sides = [1, -1].map((side) => formula.at(at.with(i, this.inner.natural(output, z[place] + side * s[place], 0).mean)).value);
      const half = (0.5 * Math.abs(sides[0] - sides[1])) / this.scale[k];
      sum += Math.min(Number.isNaN(half) ? largest : half, largest) ** 2;
    });
    return Math.max(Math.sqrt(sum), least_std);
  }

  #standard(k, value) {
    const { largest } = this.tuning.formulas;
    const f = (value - this.centre[k]) / this.scale[k];
    return Number.isFinite(f) ? Math.min(Math.max(f, -largest), largest) : this.worse[k] * largest;
  }

  // Columns of all outputs: those of the simulated ones, and what is computed for design b and formula k.
  #joined(own, count, computed) {
    const { q, p } = this;
    const found = new Float64Array(count * q);
    for (let b = 0; b < count; b++) {
      this.learned.forEach((j, i) => (found[b * q + j] = own[b * p + i]));
      this.derived.forEach((j, k) => (found[b * q + j] = computed(b, k)));
    }
    return found;
  }
}
