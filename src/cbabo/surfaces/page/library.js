// Answers from a library of solved thresholds, by a few small quadratic programs from the nearest: as Python's library, step by step.
//
// Everything is in units of the standardised, warped outputs; m entries, r requirements. A requirement reads
// sign z[output] <= bound. Where the simulator fails in some region, the risk of that is one output and one requirement more.

import { decoded, normal } from "./numbers.js";
import { QuadraticProgram } from "./quadratic.js";
import { Surrogates } from "./surrogates.js";

const NEAR = 1;
const ROUGHLY = [1, 10]; // guesses and iterations
const CORRECTIONS = [1, 3, 1e4];
const MARGINS = 2;
const ROUNDING = 1e-7;
const NEARLY = 1e-3;
const EQUAL = 1e-7;
const SAME = 1e-9;
const WIDEST = 5;
const WIDE = 0.1;
const SURE = 10;

export class Library {
  // surrogates: of the outputs; measured: the measured evaluations.
  constructor(stated, problem, surrogates, measured) {
    Object.assign(this, { problem, surrogates, measured, price: stated.price, wanted: stated.probability, m: stated.theta.shape[0] });
    for (const name of ["theta", "x", "mean", "std", "slope", "curvature", "multipliers", "margin"]) this[name] = decoded(stated[name]);
    this.risk = stated.failure_model ? new Surrogates(stated.failure_model.surrogates) : null;
    this.d = problem.variables.length;
    this.outputs = problem.outputs.length;
    this.q = this.outputs + (this.risk ? 1 : 0);
    this.r = problem.requirements.length;
    this.goal = problem.goal * surrogates.orientation(0);
    this.output = problem.requirements.map((r) => r.output);
    this.sign = problem.requirements.map((r) => r.constraint.sign * surrogates.orientation(r.output));
    if (this.risk) {
      this.output.push(this.q - 1);
      this.sign.push(1);
      this.riskBound = (stated.failure_model.limit - this.risk.centre[0]) / this.risk.scale[0];
    }
    this.room = Array.from({ length: this.outputs }, (_, o) => {
      let widest = 0;
      for (let e = 0; e < this.m; e++) widest = Math.max(widest, this.std[e * this.outputs + o]);
      return Math.max(WIDE, SURE * widest);
    });
    this.penalty = 10 * (1 + Math.max(...this.multipliers));
    this.free = problem.variables.map((v) => v.type === "real");
    this.discrete = this.free.includes(false);
    this.units = measured.map((e) => problem.unit(e.point));
    this.program = new QuadraticProgram(this.d, this.output.length);
    this.values = measured.map((e) => this.goal * this.#standard(0, e.outputs[0]));
  }

  // For each row of thresholds the design (unit cube), and the evaluation if it is a measured one, or else z and s there.
  // Rows go side by side, for the surrogates are quickest with a few designs together.
  answers(rows) {
    const { movable } = this.problem;
    const asked = rows.map((row) => {
      const thresholds = row.map((t, i) => Math.min(Math.max(t, movable[i].low), movable[i].high));
      return { thresholds, bound: this.#bound(thresholds) };
    });
    const solved = this.#solved(asked);
    return asked.map(({ thresholds, bound }, b) => this.#best([this.#floor(thresholds), this.#entry(bound), solved[b]]));
  }

  // The least expected loss, the first of those that are equal; what is not probable enough comes last. A deviation of the objective
  // is added: the best of many believed values is mostly the luckiest.
  #best(choices) {
    const some = choices.filter((choice) => choice !== null);
    const enough = some.some((choice) => choice.chance >= this.wanted - NEARLY);
    const losses = some.map(({ value, doubt, chance }) =>
      enough && chance < this.wanted - NEARLY ? Infinity : value + doubt + this.price * (1 - chance),
    );
    const least = Math.min(...losses);
    return some[losses.findIndex((loss) => loss <= least + EQUAL)];
  }

  // The best measured design that obeys the limits.
  #floor(thresholds) {
    let best = null;
    this.measured.forEach((evaluation, i) => {
      if (best !== null && this.values[i] >= best.value) return;
      if (this.problem.obeys(evaluation.outputs, thresholds)) best = { evaluation, value: this.values[i], doubt: 0, chance: 1 };
    });
    return best && { ...best, x: this.problem.unit(best.evaluation.point) };
  }

  // The best entry whose own design keeps its margins within these bounds.
  #entry(bound) {
    const e = this.#bestEntry(bound);
    return e < 0 ? null : this.#choice(bound, part(this.x, e, this.d), part(this.mean, e, this.q), part(this.std, e, this.outputs));
  }

  // What is known already has no chance of its own: if it obeys, it is no better than the best measured design.
  #choice(bound, x, z, s) {
    return { x, z, s, value: this.goal * z[0], doubt: s[0], chance: this.#known(x) ? 0 : this.#chance(bound, z, s) };
  }

  #known(x) {
    return this.discrete && this.units.some((u) => u.every((value, i) => Math.abs(value - x[i]) <= SAME));
  }

  #bestEntry(bound) {
    let best = -1;
    let least = Infinity;
    for (let e = 0; e < this.m; e++) {
      const value = this.goal * this.mean[e * this.q];
      if (value < least && this.#keeps(e, bound)) [best, least] = [e, value];
    }
    return best;
  }

  #keeps(e, bound) {
    for (let j = 0; j < this.r; j++) {
      if (this.sign[j] * this.mean[e * this.q + this.output[j]] + this.margin[e * this.r + j] > bound[j]) return false;
    }
    return true;
  }

  // A design for each, by the surrogates alone: from the nearest entries, then corrected.
  #solved(asked) {
    const { d, q, outputs } = this;
    const count = asked.length;
    const states = this.#nearest(asked);
    const side = () => Float64Array.from(states.flatMap((s) => Array.from(s.x)));
    CORRECTIONS.forEach((more, i) => {
      const x = side();
      const { z, J } = this.#seen(x, count);
      if (i < MARGINS) this.#keepMargins(states, asked, x, z);
      states.forEach((state, b) => {
        const H = part(this.curvature, state.entry, d * d).map((h, e) => (e % (d + 1) === 0 ? h + more : h));
        const goal = asked[b].bound.map((t, j) => t - state.margin[j]);
        Object.assign(state, this.#step(state.x, part(z, b, q), part(J, b, q * d), H, goal, state.lam));
      });
    });
    const { z, s } = this.surrogates.moments(side(), count); // all of them: they are shown
    return states.map((state, b) => this.#choice(asked[b].bound, state.x, part(z, b, outputs), part(s, b, outputs)));
  }

  // Margins as they are needed at the designs x: deviations are looked at where a bound is so close that they matter.
  #keepMargins(states, asked, x, z) {
    const { q, outputs } = this;
    const close = new Uint8Array(states.length * outputs);
    states.forEach((_, b) => {
      for (let j = 0; j < this.r; j++) {
        const room = asked[b].bound[j] - this.sign[j] * z[b * q + this.output[j]];
        if (room < this.room[this.output[j]]) close[b * outputs + this.output[j]] = 1;
      }
    });
    const given = Float64Array.from(states.flatMap((state) => Array.from(state.s)));
    const s = this.surrogates.renewed(given, x, states.length, close);
    states.forEach((state, b) => {
      state.s = part(s, b, outputs);
      state.margin = this.#margin(state.s, state.lam);
    });
  }

  // One program from each of the nearest entries, and from the best that is good here too; the best result by the means.
  #nearest(asked) {
    const { q } = this;
    const tries = asked.map(({ thresholds, bound }) => this.#starts(thresholds, bound).map((entry) => this.#tried(entry, bound)));
    const flat = tries.flat();
    const means = this.#means(Float64Array.from(flat.flatMap((t) => Array.from(t.x))), flat.length);
    flat.forEach((t, b) => {
      const z = part(means, b, q);
      const over = t.goal.reduce((sum, bound, j) => sum + Math.max(this.sign[j] * z[this.output[j]] - bound, 0), 0);
      t.merit = this.goal * z[0] + this.penalty * over;
    });
    return tries.map((some) => {
      const least = Math.min(...some.map((t) => t.merit));
      return some.find((t) => t.merit <= least + EQUAL);
    });
  }

  #starts(thresholds, bound) {
    const theta = this.problem.theta(thresholds);
    const k = theta.length;
    const distance = Array.from({ length: this.m }, (_, e) => {
      let sum = 0;
      for (let i = 0; i < k; i++) sum += (theta[i] - this.theta[e * k + i]) ** 2;
      return sum;
    });
    const near = distance.map((_, e) => e).sort((a, b) => distance[a] - distance[b]).slice(0, NEAR);
    const good = this.#bestEntry(bound);
    return [...near, good < 0 ? near[0] : good];
  }

  #tried(entry, bound) {
    const { d, q } = this;
    const margin = Array.from(this.output, (_, j) => (j < this.r ? this.margin[entry * this.r + j] : 0));
    const goal = bound.map((t, j) => t - margin[j]);
    const [x, z] = [part(this.x, entry, d), part(this.mean, entry, q)];
    const held = Array.from(this.output, (_, j) => (j < this.r ? this.multipliers[entry * this.r + j] : 0));
    const found = this.#step(x, z, part(this.slope, entry, q * d), part(this.curvature, entry, d * d), goal, held, ROUGHLY);
    return { ...found, entry, margin, goal, s: part(this.std, entry, this.outputs) };
  }

  // Solve one program at a design; discrete variables stay. lam: multipliers of a program whose solution was this design; effort:
  // guesses and iterations.
  #step(x, z, J, H, bound, lam, effort = []) {
    const { d, free, sign, output } = this;
    const g = Float64Array.from(x, (_, i) => (free[i] ? this.goal * J[i] : 0));
    const held = Float64Array.from(H, (h, e) => {
      const [i, c] = [Math.floor(e / d), e % d];
      return free[i] && free[c] ? h : i === c ? 1 : 0;
    });
    const A = new Float64Array(output.length * d);
    output.forEach((o, j) => {
      for (let i = 0; i < d; i++) A[j * d + i] = free[i] ? sign[j] * J[o * d + i] : 0;
    });
    const c = bound.map((t, j) => t - sign[j] * z[output[j]]);
    const low = Array.from(x, (u, i) => (free[i] ? -u : -1));
    const high = Array.from(x, (u, i) => (free[i] ? 1 - u : 1));
    const { p, multipliers } = this.program.continued(g, held, A, c, low, high, this.penalty, lam, ...effort);
    return { x: Float64Array.from(x, (u, i) => Math.min(Math.max(free[i] ? u + p[i] : u, 0), 1)), lam: multipliers };
  }

  #standard(j, y) {
    return (this.surrogates.warped(j, y) - this.surrogates.centre[j]) / this.surrogates.scale[j];
  }

  #bound(thresholds) {
    const bound = this.problem.requirements.map((r, j) => this.sign[j] * this.#standard(r.output, this.problem.limit(r, thresholds)));
    return this.risk ? [...bound, this.riskBound] : bound;
  }

  #means(x, count) {
    const z = this.surrogates.means(x, count);
    return this.risk ? beside(z, this.risk.means(x, count), count, this.outputs, 1) : z;
  }

  #seen(x, count) {
    const { z, J } = this.surrogates.meansAndSlopes(x, count);
    if (!this.risk) return { z, J };
    const risk = this.risk.meansAndSlopes(x, count);
    return { z: beside(z, risk.z, count, this.outputs, 1), J: beside(J, risk.J, count, this.outputs * this.d, this.d) };
  }

  // That designs with these means and deviations obey their bounds; the risk of failures has no part in it.
  #chance(bound, z, s) {
    const above = Array.from(s, () => Infinity);
    const below = Array.from(s, () => Infinity);
    for (let j = 0; j < this.r; j++) {
      const o = this.output[j];
      const room = (bound[j] - this.sign[j] * z[o]) / s[o];
      const side = this.sign[j] > 0 ? above : below;
      side[o] = Math.min(side[o], room);
    }
    return above.reduce((all, top, o) => all * Math.max(normal(top) - normal(-below[o]), 0), 1);
  }

  // Margins for deviations s and multipliers: as many deviations as each is worth, or as the probability demands.
  #margin(s, lam) {
    const used = this.output.slice(0, this.r);
    const cost = used.map((o, j) => Math.log(Math.sqrt(2 * Math.PI) * Math.max(Math.abs(lam[j]), 1e-12) * s[o]));
    const at = (price) => cost.map((c) => Math.sqrt(2 * Math.min(Math.max(price - c, 0), 0.5 * WIDEST ** 2)));
    const enough = (price) => at(price).reduce((all, beta) => all * normal(beta), 1) >= this.wanted;
    let low = Math.log(this.price);
    let high = low;
    if (!enough(low)) {
      high = low + 60;
      for (let i = 0; i < 40; i++) {
        const middle = 0.5 * (low + high);
        if (enough(middle)) high = middle;
        else low = middle;
      }
    }
    const margin = at(high).map((beta, j) => s[used[j]] * beta + ROUNDING);
    return this.risk ? [...margin, 0] : margin;
  }
}

function part(array, i, size) {
  return array.subarray(i * size, (i + 1) * size);
}

// Columns of b after those of a, row by row.
function beside(a, b, count, width, more) {
  const joined = new Float64Array(count * (width + more));
  for (let i = 0; i < count; i++) {
    joined.set(a.subarray(i * width, (i + 1) * width), i * (width + more));
    joined.set(b.subarray(i * more, (i + 1) * more), i * (width + more) + width);
  }
  return joined;
}
