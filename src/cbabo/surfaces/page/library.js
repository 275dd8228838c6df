// Answers from a library of solved thresholds, by a few small quadratic programs from the nearest: as Python's library, step by step.
//
// Everything is in units of the standardised, warped outputs; m entries, r requirements, which read sign z[output] <= bound. The
// rows of a program are the requirements that come near their bounds in some entry; where the simulator fails in some region, the
// failure probability is one output and one row more, and so is each known relation between variables.

import { decoded, student, studentMargin } from "./numbers.js";
import { QuadraticProgram } from "./quadratic.js";
import { Surrogates } from "./surrogates.js";

export class Library {
  // requirements: the Requirements; measured: the measured evaluations; tuning: the numbers that the document shares with Python.
  constructor(stated, problem, requirements, measured, tuning) {
    const { surrogates } = requirements;
    Object.assign(this, { problem, surrogates, requirements, measured, tuning, price: stated.price, m: stated.theta.shape[0] });
    this.ownAim = stated.probability;
    this.aimAt(stated.probability);
    for (const name of ["theta", "x", "mean", "std", "slope", "curvature", "multipliers", "margin"]) this[name] = decoded(stated[name]);
    this.failures = stated.failure_model ? new Surrogates(stated.failure_model.surrogates, tuning) : null;
    this.d = problem.d;
    this.outputs = problem.outputs.length;
    this.region = problem.region?.relations.length ? problem.region : null;
    this.related = this.region ? this.region.relations.length : 0;
    this.q = this.outputs + (this.failures ? 1 : 0) + this.related;
    this.r = problem.requirements.length;
    this.goal = problem.goal * surrogates.orientation(0);
    this.near = this.#near();
    this.output = this.near.map((j) => requirements.output[j]);
    this.sign = this.near.map((j) => requirements.sign[j]);
    if (this.failures) {
      this.output.push(this.outputs);
      this.sign.push(1);
      this.mostFailing = stated.failure_model.most;
      this.failureBound = (stated.failure_model.limit - this.failures.centre[0]) / this.failures.scale[0];
    }
    for (let i = 0; i < this.related; i++) {
      this.output.push(this.q - this.related + i);
      this.sign.push(1);
    }
    this.relationBounds = Array.from({ length: this.related }, () => -tuning.relation_slack);
    const { wide, sure, penalty } = tuning.fast_map;
    this.close = Array.from({ length: this.outputs }, (_, o) => {
      let largest = 0;
      for (let e = 0; e < this.m; e++) largest = Math.max(largest, this.std[e * this.outputs + o]);
      return Math.max(wide, sure * largest);
    });
    this.penalty = penalty * (1 + Math.max(...this.multipliers));
    this.free = problem.columns.map(({ variable }) => variable.type === "real");
    this.discrete = this.free.includes(false);
    this.program = new QuadraticProgram(this.d, this.output.length, tuning.programs);
    const [z, s] = [decoded(stated.measured.z), decoded(stated.measured.z_std)];
    const byId = new Map(measured.map((e) => [e.id, e]));
    this.exact = stated.measured.exact;
    this.allExact = this.exact.every(Boolean);
    // What is known of each measured design: its outputs as measured, or, where they are noisy, their posterior.
    this.designs = stated.measured.ids.map((id, i) => {
      const evaluation = byId.get(id);
      const own = { z: part(z, i, this.outputs), s: part(s, i, this.outputs), x: problem.unit(evaluation.point), evaluation };
      const obeys = problem.region ? problem.region.holds(evaluation.point) : true;
      return { ...own, obeys, value: this.goal * own.z[0] };
    });
  }

  // Aim at this probability of feasibility.
  aimAt(probability) {
    this.aim = probability;
    this.least = probability - this.tuning.probability_slack;
  }

  // For each row of thresholds the design (unit cube), and the evaluation if it is a measured one, or else z and s there.
  // Rows go side by side, for the surrogates are quickest with a few designs together.
  answers(rows) {
    const asked = rows.map((thresholds) => {
      const theta = this.problem.theta(thresholds);
      const bound = this.requirements.bounds(theta);
      const goal = this.near.map((j) => bound[j]);
      return { thresholds, theta, bound, goal: [...goal, ...(this.failures ? [this.failureBound] : []), ...this.relationBounds] };
    });
    const solved = this.#solved(asked);
    const found = asked.map(({ thresholds, bound }, b) => this.#best([this.#incumbent(thresholds, bound), this.#entry(bound), solved[b]]));
    return this.#consistent(asked, found).map((choice, b) => ({ ...this.#asMeasured(choice, asked[b]), approximate: true }));
  }

  // A measured design with what is known of it, and with its probability for these limits; another as it is.
  #asMeasured(choice, { thresholds, bound }) {
    const { design } = choice;
    if (design === null) return choice;
    const { z, s, evaluation } = design;
    return { ...choice, z, s, evaluation, chance: this.#chance(design, thresholds, bound) };
  }

  // The same, but where a design that was solved for other limits is better, probable enough, and at least as probable here as for its
  // own limits: so no answer is worse than the answer to stricter limits. A measured design is left only for less expected loss.
  #consistent(asked, found) {
    const others = found.length > 1 ? found.filter((c) => c.design === null).map((c) => ({ ...c, own: c.chance })) : [];
    const pool = [...this.#entryDesigns(), ...others];
    const { consistency, probability_slack } = this.tuning;
    const loss = ({ value, chance }) => value + this.price * (1 - chance);
    return found.map((choice, b) => {
      const { bound } = asked[b];
      const reached = choice.chance >= this.least;
      let best = null;
      for (const other of pool) {
        if (reached && other.value >= choice.value - consistency.gain) continue;
        if ((best && other.value >= best.value) || !this.#obeys(other.z, bound)) continue;
        const chance = this.requirements.probability(bound, other.z, other.s);
        if (chance >= this.least && chance >= other.own - probability_slack) best = { ...other, chance };
      }
      return best === null || (choice.design && reached && loss(best) >= loss(choice)) ? choice : best;
    });
  }

  // The entries' designs, and the probability with which they obey their own limits; made when first needed.
  #entryDesigns() {
    const k = this.theta.length / this.m;
    this.entries ??= Array.from({ length: this.m }, (_, e) => {
      const bound = this.requirements.bounds(Array.from(part(this.theta, e, k)));
      const design = this.#choice(bound, part(this.x, e, this.d), part(this.mean, e, this.q), part(this.std, e, this.outputs));
      return { ...design, own: this.#isExact(design.design) ? Infinity : design.chance };
    });
    return this.entries;
  }

  // Whether means obey their bounds.
  #obeys(z, bound) {
    const { sign, output } = this.requirements;
    return bound.every((t, j) => sign[j] * z[output[j]] <= t);
  }

  // The least expected loss, the first of those that are equal; what is not probable enough comes last. The standard deviation of
  // the objective is added: the best of many predicted values is mostly an underestimate.
  #best(choices) {
    const some = choices.filter((choice) => choice !== null);
    const enough = some.some((choice) => choice.chance >= this.least);
    const losses = some.map(({ value, deviation, chance }) =>
      enough && chance < this.least ? Infinity : value + deviation + this.price * (1 - chance),
    );
    const least = Math.min(...losses);
    return some[losses.findIndex((loss) => loss <= least + this.tuning.fast_map.equal)];
  }

  // The measured design of least expected loss that obeys the limits with the probability asked for.
  #incumbent(thresholds, bound) {
    let [best, least] = [null, Infinity];
    for (const design of this.designs) {
      if (design.value >= least) continue;
      const chance = this.#chance(design, thresholds, bound);
      const loss = design.value + this.price * (1 - chance);
      if (chance >= this.least && loss < least) [best, least] = [{ ...design, deviation: design.s[0], chance, design }, loss];
    }
    return best;
  }

  // The probability that a measured design obeys the limits: 1 or 0 where no output is noisy, 0 if it breaks a known relation.
  #chance({ evaluation, z, s, obeys }, thresholds, bound) {
    if (!obeys || !this.problem.obeys(evaluation.outputs, thresholds, this.exact)) return 0;
    return this.allExact ? 1 : this.requirements.probability(bound, z, s);
  }

  // The best entry whose own design keeps its margins within these bounds.
  #entry(bound) {
    const e = this.#bestEntry(bound);
    return e < 0 ? null : this.#choice(bound, part(this.x, e, this.d), part(this.mean, e, this.q), part(this.std, e, this.outputs));
  }

  // A design that was measured exactly has no probability of its own: if it obeys, it is no better than the incumbent.
  #choice(bound, x, z, s) {
    const design = this.#measuredAt(x);
    const chance = this.#isExact(design) ? 0 : this.requirements.probability(bound, z, s);
    return { x, z, s, value: this.goal * z[0], deviation: s[0], chance, design };
  }

  // The measured design at x, as happens where variables are discrete, or null.
  #measuredAt(x) {
    if (!this.discrete) return null;
    const same = (u) => u.every((value, i) => Math.abs(value - x[i]) <= this.tuning.same_design);
    return this.designs.find((design) => same(design.x)) ?? null;
  }

  #isExact(design) {
    return this.allExact && design !== null;
  }

  // entries: among which it is sought; all unless given.
  #bestEntry(bound, entries = null) {
    let best = -1;
    let least = Infinity;
    for (let i = 0; i < (entries?.length ?? this.m); i++) {
      const e = entries ? entries[i] : i;
      const value = this.goal * this.mean[e * this.q];
      if (value < least && this.#keeps(e, bound)) [best, least] = [e, value];
    }
    return best;
  }

  #keeps(e, bound) {
    const { sign, output } = this.requirements;
    for (let j = 0; j < this.r; j++) {
      if (sign[j] * this.mean[e * this.q + output[j]] + this.margin[e * this.r + j] > bound[j]) return false;
    }
    return true;
  }

  // The requirements that come near their bounds in some entry, one at least; all where entries are too few to tell.
  #near() {
    const all = Array.from({ length: this.r }, (_, j) => j);
    const { solved, far } = this.tuning.fast_map;
    if (this.m < solved) return all;
    const { sign, output } = this.requirements;
    const near = new Set();
    for (let e = 0; e < this.m; e++) {
      const bound = this.requirements.bounds(Array.from(part(this.theta, e, this.theta.length / this.m)));
      for (const j of all) {
        const slack = bound[j] - sign[j] * this.mean[e * this.q + output[j]];
        if (slack < far * this.margin[e * this.r + j] || this.multipliers[e * this.r + j] > 0) near.add(j);
      }
    }
    return near.size ? all.filter((j) => near.has(j)) : [0];
  }

  // A design for each, by the surrogates alone: from the nearest entries, then corrected.
  #solved(asked) {
    const { d, q, outputs } = this;
    const { corrections, margin_corrections } = this.tuning.fast_map;
    const kept = this.#nearest(asked);
    const states = kept.flat();
    const count = states.length;
    const limits = kept.flatMap((some, b) => some.map(() => asked[b]));
    const side = (some) => Float64Array.from(some.flatMap((s) => Array.from(s.x)));
    corrections.forEach((more, i) => {
      const x = side(states);
      const { z, J } = this.#seen(x, count);
      if (i < margin_corrections) this.#keepMargins(states, limits, x, z);
      states.forEach((state, b) => {
        const H = part(this.curvature, state.entry, d * d).map((h, e) => (e % (d + 1) === 0 ? h + more : h));
        const goal = limits[b].goal.map((t, j) => t - state.margin[j]);
        Object.assign(state, this.#step(state.x, part(z, b, q), part(J, b, q * d), H, goal, state.lam));
      });
    });
    const best = count > asked.length ? this.#bestCorrected(kept, limits, side(states)) : states;
    const { region } = this.problem;
    if (region) for (const state of best) state.x = region.repaired(state.x, part(this.x, state.entry, d));
    const { z, s } = this.surrogates.moments(side(best), best.length); // They are shown, so that all are needed.
    return best.map((state, b) => this.#choice(asked[b].bound, state.x, part(z, b, outputs), part(s, b, outputs)));
  }

  // The best of the combinations of categories that were corrected, for each.
  #bestCorrected(kept, limits, x) {
    const means = this.#means(x, limits.length);
    kept.flat().forEach((state, b) => {
      const goal = limits[b].goal.map((t, j) => t - this.tuning.fast_map.kept_margin * state.margin[j]);
      state.merit = this.#merit(part(means, b, this.q), goal);
    });
    return kept.map((some) => some.reduce((best, state) => (state.merit < best.merit ? state : best)));
  }

  // The objective of means, and a penalty for broken bounds.
  #merit(z, goal) {
    const over = goal.reduce((sum, bound, j) => sum + Math.max(this.sign[j] * z[this.output[j]] - bound, 0), 0);
    return this.goal * z[0] + this.penalty * over;
  }

  // Margins as they are needed at the designs x: standard deviations are computed where a bound is so close that they matter.
  #keepMargins(states, asked, x, z) {
    const { q, outputs } = this;
    const close = new Uint8Array(states.length * outputs);
    states.forEach((_, b) => {
      for (let j = 0; j < this.near.length; j++) {
        const slack = asked[b].goal[j] - this.sign[j] * z[b * q + this.output[j]];
        if (slack < this.close[this.output[j]]) close[b * outputs + this.output[j]] = 1;
      }
    });
    const given = Float64Array.from(states.flatMap((state) => Array.from(state.s)));
    const s = this.surrogates.renewed(given, x, states.length, close);
    states.forEach((state, b) => {
      state.s = part(s, b, outputs);
      state.margin = this.#margin(state.s, state.lam);
    });
  }

  // One program from the nearest entry, and one from the best that obeys these bounds too, also of each combination of categories;
  // the best result by the means, and the best ones of a few other combinations.
  #nearest(asked) {
    const { q } = this;
    const tries = asked.map(({ theta, bound, goal }) => this.#starts(theta, bound).map((entry) => this.#tried(entry, goal)));
    const flat = tries.flat();
    const means = this.#means(Float64Array.from(flat.flatMap((t) => Array.from(t.x))), flat.length);
    flat.forEach((t, b) => (t.merit = this.#merit(part(means, b, q), t.goal)));
    const { equal, kept_combinations } = this.tuning.fast_map;
    const combinations = this.#combinations();
    return tries.map((some) => {
      const least = Math.min(...some.map((t) => t.merit));
      const kept = [some.find((t) => t.merit <= least + equal)];
      while (kept.length < Math.min(kept_combinations, combinations.length)) {
        const others = some.filter((t) => kept.every((k) => this.combination[k.entry] !== this.combination[t.entry]));
        if (!others.length) break;
        kept.push(others.reduce((best, t) => (t.merit < best.merit ? t : best)));
      }
      return kept;
    });
  }

  #starts(theta, bound) {
    const nearest = this.#nearestEntry(theta);
    const good = this.#bestEntry(bound);
    const ofCombinations = this.#combinations().flatMap((entries) => {
      const own = this.#nearestEntry(theta, entries);
      const best = this.#bestEntry(bound, entries);
      return [own, best < 0 ? own : best];
    });
    return [nearest, good < 0 ? nearest : good, ...ofCombinations];
  }

  // The entries of each combination of categories, the most frequent first, then the first; none without categories.
  #combinations() {
    if (this.groups) return this.groups;
    const groups = new Map();
    const columns = this.problem.columns.flatMap(({ label }, c) => (label === null ? [] : [c]));
    this.combination = Array.from({ length: this.m }, (_, e) => columns.map((c) => this.x[e * this.d + c]).join());
    if (columns.length) this.combination.forEach((key, e) => groups.set(key, [...(groups.get(key) ?? []), e]));
    this.groups = [...groups.values()].sort((a, b) => b.length - a.length).slice(0, this.tuning.fast_map.combinations);
    return this.groups;
  }

  // entries: among which it is sought; all unless given.
  #nearestEntry(theta, entries = null) {
    const k = theta.length;
    let [nearest, least] = [0, Infinity];
    for (let i = 0; i < (entries?.length ?? this.m); i++) {
      const e = entries ? entries[i] : i;
      let distance = 0;
      for (let c = 0; c < k; c++) distance += (theta[c] - this.theta[e * k + c]) ** 2;
      if (distance < least) [nearest, least] = [e, distance];
    }
    return nearest;
  }

  #tried(entry, bound) {
    const { d, q } = this;
    const { rough_guesses, rough_iterations } = this.tuning.fast_map;
    const ofEntry = (values) => this.output.map((_, j) => (j < this.near.length ? values[entry * this.r + this.near[j]] : 0));
    const margin = ofEntry(this.margin);
    const goal = bound.map((t, j) => t - margin[j]);
    const [x, z] = [part(this.x, entry, d), part(this.mean, entry, q)];
    const [J, H] = [part(this.slope, entry, q * d), part(this.curvature, entry, d * d)];
    const found = this.#step(x, z, J, H, goal, ofEntry(this.multipliers), [rough_guesses, rough_iterations]);
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

  // The probability that the simulator fails at designs, or null where failures show no pattern.
  failureProbabilities(x, count) {
    if (!this.failures) return null;
    const { centre, scale } = this.failures;
    return Array.from(this.failures.means(x, count), (z) => Math.min(Math.max(z * scale[0] + centre[0], 0), this.mostFailing));
  }

  #means(x, count) {
    let z = this.surrogates.means(x, count);
    if (this.failures) z = beside(z, this.failures.means(x, count), count, this.outputs, 1);
    return this.region ? beside(z, this.#relations(x, count).g, count, this.q - this.related, this.related) : z;
  }

  // Known relations at designs, and their derivatives.
  #relations(x, count) {
    const found = Array.from({ length: count }, (_, b) => this.region.valuesAndSlopes(part(x, b, this.d)));
    return { g: Float64Array.from(found.flatMap(({ g }) => g)), J: Float64Array.from(found.flatMap(({ J }) => Array.from(J))) };
  }

  #seen(x, count) {
    let { z, J } = this.surrogates.meansAndSlopes(x, count);
    const { outputs, q, d, related } = this;
    if (this.failures) {
      const failures = this.failures.meansAndSlopes(x, count);
      [z, J] = [beside(z, failures.z, count, outputs, 1), beside(J, failures.J, count, outputs * d, d)];
    }
    if (!this.region) return { z, J };
    const known = this.#relations(x, count);
    return { z: beside(z, known.g, count, q - related, related), J: beside(J, known.J, count, (q - related) * d, related * d) };
  }

  // Margins of the rows for standard deviations s and multipliers: so many deviations as balance their cost against the
  // probability that they gain, or more where the stated probability demands it.
  #margin(s, lam) {
    const { widest, least_multiplier, price_span, price_halvings } = this.tuning.solver;
    const used = this.output.slice(0, this.near.length);
    const cost = used.map((o, j) => Math.max(Math.abs(lam[j]), least_multiplier) * s[o]);
    const at = (price) => cost.map((c) => Math.min(studentMargin(c / Math.exp(price)), widest));
    const enough = (price) => at(price).reduce((all, beta) => all * student(beta), 1) >= this.aim;
    let low = Math.log(this.price);
    let high = low;
    if (!enough(low)) {
      high = low + price_span;
      for (let i = 0; i < price_halvings; i++) {
        const middle = 0.5 * (low + high);
        if (enough(middle)) high = middle;
        else low = middle;
      }
    }
    const margin = at(high).map((beta, j) => s[used[j]] * beta + this.tuning.bound_slack);
    return [...margin, ...(this.failures ? [0] : []), ...this.relationBounds.map(() => 0)];
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
