// Answers for any limits, computed here from the document, and measured designs beside them.

import { Composed } from "./composed.js";
import { DesignMap } from "./map.js";
import { decoded } from "./numbers.js";
import { Problem } from "./problem.js";
import { Requirements } from "./requirements.js";
import { Surrogates } from "./surrogates.js";

const VISIBLE = 0.01; // A share of the range of the objective.

export class Answers {
  constructor(stated) {
    const { tuning } = stated;
    this.tuning = tuning;
    this.problem = new Problem(stated.problem, tuning);
    this.evaluations = stated.evaluations;
    this.measured = stated.evaluations.filter((e) => e.state === "complete");
    this.units = this.measured.map((e) => this.problem.unit(e.point));
    this.notes = stated.notes ?? []; // Warnings of every answer that is not verified.
    this.known = stated.map !== undefined;
    if (this.known) {
      this.tried = stated.tried && { ...stated.tried, x: decoded(stated.tried.x) };
      const processes = new Surrogates(stated.surrogates, tuning);
      this.surrogates = stated.formulas ? new Composed(processes, stated.formulas, this.problem, tuning) : processes;
      this.requirements = new Requirements(this.problem, this.surrogates);
      this.map = new DesignMap(stated.map, this.problem, this.requirements, this.measured, tuning);
    }
  }

  // Designs, means, deviations and probabilities for many rows of thresholds.
  many(rows) {
    const { problem, surrogates, requirements } = this;
    const found = this.map.designs(rows).map((design) => ({ ...design, ...problem.legal(design.x) }));
    this.#complete(found);
    const successes = this.#successes(found);
    return rows.map((thresholds, b) => {
      const { point, evaluation, value, chance, approximate = false, z: means, s: deviations } = found[b];
      const natural = problem.outputs.map((_, j) => surrogates.natural(j, means[j], deviations[j]));
      const success = successes[b];
      if (evaluation) {
        const status = chance >= this.map.least ? "verified" : "unreachable";
        return { ...measuredAnswer(thresholds, evaluation, natural, deviations), probability: chance, success, approximate: false, status, value };
      }
      const probability = requirements.probability(requirements.bounds(problem.theta(thresholds)), means, deviations);
      return {
        thresholds,
        point,
        mean: natural.map((n) => n.mean),
        std: natural.map((n) => n.std),
        probability,
        success,
        approximate,
        status: probability >= this.map.least ? "predicted" : "unreachable",
        value: value ?? problem.goal * natural[0].mean, // Less is better; a library's is in the units in which it was learned.
      };
    });
  }

  // The least difference of the objective that a picture should show: a share of the range that was measured.
  get visible() {
    const values = this.measured.map((e) => e.outputs[0]);
    return VISIBLE * (Math.max(...values) - Math.min(...values));
  }

  // One answer, with sentences about limits that lie outside their range, and about what an audit has found.
  one(thresholds) {
    const [answer] = this.many([thresholds]);
    return { ...answer, warnings: [...this.problem.outside(thresholds), ...(answer.status === "verified" ? [] : this.notes)] };
  }

  // For rows of thresholds what decides between them: value, less being better, and whether they can be met. A network's designs
  // are judged by their means, within a tolerance; a library's by the probability that they aim at.
  rank(rows, tolerance) {
    const { problem, surrogates } = this;
    if (this.map.library) return this.many(rows).map(({ value, status }) => ({ value, feasible: status !== "unreachable" }));
    const designs = this.map.designs(rows).map(({ x }) => problem.legal(x).unit);
    const q = problem.outputs.length;
    const z = surrogates.means(Float64Array.from(designs.flat()), rows.length);
    return rows.map((thresholds, b) => {
      const mean = problem.outputs.map((_, j) => surrogates.natural(j, z[b * q + j], 0).mean);
      const feasible = problem.slacks(mean, thresholds).every((slack) => slack >= -tolerance);
      return { value: problem.goal * mean[0], feasible };
    });
  }

  // How each output stands to its limits.
  standings(answer) {
    const slacks = this.problem.slacks(answer.mean, answer.thresholds);
    return this.problem.requirements.map((r, i) => ({
      ...r,
      limit: this.problem.limit(r, answer.thresholds),
      mean: answer.mean[r.output],
      std: answer.std[r.output],
      slack: slacks[i],
      standing: this.#standing(slacks[i], answer.std[r.output], r.constraint),
    }));
  }

  // violated: broken by more than a standard deviation, or measured and broken at all; active: close to the limit.
  #standing(slack, std, constraint) {
    if (slack < -Math.max(std, this.problem.tolerance(constraint))) return "violated";
    return slack <= Math.max(2 * std, this.tuning.active_share * constraint.scale) ? "active" : "slack";
  }

  // The measured design nearest to a point, variables counted in shares of their ranges; which variable differs most, and by what share.
  nearest(point) {
    const at = this.problem.unit(point);
    let best = null;
    this.units.forEach((x, i) => {
      const distance = Math.hypot(...x.map((u, c) => u - at[c]));
      if (best === null || distance < best.distance) best = { evaluation: this.measured[i], distance, x };
    });
    if (best === null) return null;
    const apart = best.x.map((u, c) => Math.abs(u - at[c]));
    const share = Math.max(...apart);
    return { evaluation: best.evaluation, share, furthest: this.problem.columns[apart.indexOf(share)].variable.name };
  }

  // The probability that answers aim at unless told otherwise; null where they aim at none.
  get aim() {
    return this.map.library?.ownAim ?? null;
  }

  // Aim at another probability of feasibility, or, with null, at the study's own. Returns whether that is another one than before.
  aimAt(probability) {
    const { library } = this.map;
    if (!library || library.aim === (probability ?? library.ownAim)) return false;
    library.aimAt(probability ?? library.ownAim);
    this.map.least = library.least;
    return true;
  }

  // Measured designs that obey all limits but the moving ones, each at the strictest of these that it obeys.
  placed(thresholds, moving) {
    const { problem } = this;
    const relaxed = thresholds.map((t, i) => (moving.includes(i) ? problem.movable[i].relaxed : t));
    return this.measured
      .filter((e) => problem.obeys(e.outputs, relaxed))
      .map((e) => ({ id: e.id, limits: moving.map((i) => this.#strictest(problem.movable[i], e)), objective: e.outputs[0] }));
  }

  // Limits near these that are predicted to be reachable: on the way to the most relaxed, then without what need not move.
  closest(thresholds) {
    const { problem } = this;
    const reached = (row) => this.one(row).status !== "unreachable";
    const at = (share) =>
      thresholds.map((t, i) => {
        const { sign, relaxed } = problem.movable[i];
        return t + share * sign * Math.max(sign * (relaxed - t), 0); // Beyond its range a limit is relaxed enough.
      });
    const shares = Array.from({ length: 21 }, (_, i) => i / 20);
    const found = this.many(shares.map(at)).findIndex((a) => a.status !== "unreachable");
    if (found < 0) return null;
    return thresholds.reduce((limits, t, i) => (reached(limits.with(i, t)) ? limits.with(i, t) : limits), at(shares[found]));
  }

  // The probability that the simulator returns at all: known of designs that were measured, unless outputs are noisy.
  #successes(designs) {
    const library = this.map.library;
    const failing = library?.failureProbabilities(Float64Array.from(designs.flatMap((design) => Array.from(design.unit))), designs.length);
    return designs.map(({ evaluation, unit }, b) => (evaluation && library.allExact ? 1 : 1 - (failing?.[b] ?? this.#failuresNearby(unit))));
  }

  // The share of failures among designs nearby, and of one more design that fails as often as all do.
  #failuresNearby(unit) {
    if (!this.tried) return 0;
    const { x, failed } = this.tried;
    const d = unit.length;
    let [sum, all] = [failed.reduce((a, b) => a + b, 0) / failed.length, 1];
    failed.forEach((y, i) => {
      let square = 0;
      for (let c = 0; c < d; c++) square += (unit[c] - x[i * d + c]) ** 2;
      const weight = Math.exp((-0.5 * square) / (this.tuning.nearby ** 2 * d));
      sum += weight * y;
      all += weight;
    });
    return sum / all;
  }

  // Add means and deviations where they are not known yet.
  #complete(designs) {
    const open = designs.filter((design) => !design.z);
    const { z, s } = this.surrogates.moments(Float64Array.from(open.flatMap((design) => design.unit)), open.length);
    const q = this.problem.outputs.length;
    open.forEach((design, b) => Object.assign(design, { z: z.subarray(b * q, (b + 1) * q), s: s.subarray(b * q, (b + 1) * q) }));
  }

  #strictest(constraint, evaluation) {
    const needed = Math.max(
      ...constraint.outputs.map((name) => constraint.sign * evaluation.outputs[this.problem.outputs.indexOf(name)]),
    );
    return constraint.sign * Math.max(needed, constraint.sign * constraint.strictest);
  }
}

// A measured design: outputs as measured, or their posterior where they are noisy.
function measuredAnswer(thresholds, evaluation, natural, deviations) {
  const { point, outputs } = evaluation;
  return {
    thresholds,
    point,
    mean: outputs.map((y, j) => (deviations[j] === 0 ? y : natural[j].mean)),
    std: outputs.map((_, j) => (deviations[j] === 0 ? 0 : natural[j].std)),
  };
}
