// Answers for any limits, computed here from the document, and measured designs beside them.

import { DesignMap } from "./map.js";
import { between } from "./numbers.js";
import { Problem } from "./problem.js";
import { Surrogates } from "./surrogates.js";

const VISIBLE = 0.01;
const CLOSE = 0.01; // of a limit's range: nearer than this a limit is active, however sure its output is

export class Answers {
  constructor(stated) {
    this.problem = new Problem(stated.problem);
    this.evaluations = stated.evaluations;
    this.measured = stated.evaluations.filter((e) => e.state === "complete");
    this.units = this.measured.map((e) => this.problem.unit(e.point));
    this.known = stated.map !== undefined;
    if (this.known) {
      this.surrogates = new Surrogates(stated.surrogates);
      this.map = new DesignMap(stated.map, this.problem, this.surrogates, this.measured);
    }
  }

  // Designs, means, deviations and probabilities for many rows of thresholds.
  many(rows) {
    const { problem, surrogates } = this;
    const found = this.map.designs(rows).map((design) => ({ ...design, ...problem.legal(design.x) }));
    this.#complete(found);
    return rows.map((thresholds, b) => {
      const { point, evaluation, value, z: means, s: deviations } = found[b];
      if (evaluation) return { ...measuredAnswer(thresholds, evaluation), value };
      const natural = problem.outputs.map((_, j) => surrogates.natural(j, means[j], deviations[j]));
      const probability = this.#probability(thresholds, means, deviations);
      return {
        thresholds,
        point,
        mean: natural.map((n) => n.mean),
        std: natural.map((n) => n.std),
        probability,
        status: probability >= this.map.least ? "predicted" : "unreachable",
        value: value ?? problem.goal * natural[0].mean, // less is better; a library's in the units in which it was learned
      };
    });
  }

  // A difference of the objective that is worth looking at: a share of the range that was measured.
  get visible() {
    const values = this.measured.map((e) => e.outputs[0]);
    return VISIBLE * (Math.max(...values) - Math.min(...values));
  }

  one(thresholds) {
    return this.many([thresholds])[0];
  }

  // How each output stands to its limits.
  standings(answer) {
    const rooms = this.problem.rooms(answer.mean, answer.thresholds);
    return this.problem.requirements.map((r, i) => ({
      ...r,
      limit: this.problem.limit(r, answer.thresholds),
      mean: answer.mean[r.output],
      std: answer.std[r.output],
      room: rooms[i],
      standing: standing(rooms[i], answer.std[r.output], r.constraint.scale),
    }));
  }

  // The measured design nearest to a point, in the unit cube.
  nearest(point) {
    const at = this.problem.unit(point);
    let best = null;
    this.units.forEach((x, i) => {
      const distance = Math.hypot(...x.map((u, c) => u - at[c]));
      if (best === null || distance < best.distance) best = { evaluation: this.measured[i], distance };
    });
    return best;
  }

  // Measured designs that obey all limits but the moving ones, each at the strictest of these that it obeys.
  placed(thresholds, moving) {
    const { problem } = this;
    const relaxed = thresholds.map((t, i) => (moving.includes(i) ? problem.movable[i].relaxed : t));
    return this.measured
      .filter((e) => problem.obeys(e.outputs, relaxed))
      .map((e) => ({ id: e.id, limits: moving.map((i) => this.#strictest(problem.movable[i], e)), objective: e.outputs[0] }));
  }

  // Limits near these that the model believes reachable: on the way to the most relaxed, then without what need not move.
  closest(thresholds) {
    const { problem } = this;
    const reached = (row) => this.one(row).status !== "unreachable";
    const at = (share) => thresholds.map((t, i) => t + share * (problem.movable[i].relaxed - t));
    const shares = Array.from({ length: 21 }, (_, i) => i / 20);
    const found = this.many(shares.map(at)).findIndex((a) => a.status !== "unreachable");
    if (found < 0) return null;
    return thresholds.reduce((limits, t, i) => (reached(limits.with(i, t)) ? limits.with(i, t) : limits), at(shares[found]));
  }

  // Add means and deviations where they are not known yet.
  #complete(designs) {
    const open = designs.filter((design) => !design.z && !design.evaluation);
    const { z, s } = this.surrogates.moments(Float64Array.from(open.flatMap((design) => design.unit)), open.length);
    const q = this.problem.outputs.length;
    open.forEach((design, b) => Object.assign(design, { z: z.subarray(b * q, (b + 1) * q), s: s.subarray(b * q, (b + 1) * q) }));
  }

  // That every limit is obeyed; outputs are taken as independent, two limits on one output as one interval.
  #probability(thresholds, z, s) {
    const { problem, surrogates } = this;
    const high = problem.outputs.map(() => Infinity);
    const low = problem.outputs.map(() => -Infinity);
    for (const r of problem.requirements) {
      const j = r.output;
      const bound = (surrogates.warped(j, problem.limit(r, thresholds)) - surrogates.centre[j]) / surrogates.scale[j];
      const room = (bound - z[j]) / s[j];
      if (r.constraint.sign * surrogates.orientation(j) > 0) high[j] = Math.min(high[j], room);
      else low[j] = Math.max(low[j], room);
    }
    return high.reduce((all, top, j) => all * between(low[j], top), 1);
  }

  #strictest(constraint, evaluation) {
    const needed = Math.max(
      ...constraint.outputs.map((name) => constraint.sign * evaluation.outputs[this.problem.outputs.indexOf(name)]),
    );
    return constraint.sign * Math.max(needed, constraint.sign * constraint.strictest);
  }
}

function measuredAnswer(thresholds, evaluation) {
  const { point, outputs } = evaluation;
  return { thresholds, point, mean: outputs, std: outputs.map(() => 0), probability: 1, status: "verified" };
}

export function standing(room, std, scale) {
  if (room < -Math.max(std, 1e-9 * scale)) return "violated";
  return room <= Math.max(2 * std, CLOSE * scale) ? "active" : "slack";
}
