// Answers for any limits, computed here from the document, and measured designs beside them.

import { DesignMap } from "./map.js";
import { Problem } from "./problem.js";
import { Surrogates } from "./surrogates.js";

const UNLIKELY = 0.05; // probability of feasibility below which limits count as unreachable
const CLOSE = 0.01; // of a limit's range: nearer than this a limit is active, however sure its output is

export class Answers {
  constructor(stated) {
    this.problem = new Problem(stated.problem);
    this.evaluations = stated.evaluations;
    this.measured = stated.evaluations.filter((e) => e.state === "complete");
    this.units = this.measured.map((e) => this.problem.unit(e.point));
    this.known = stated.map !== undefined;
    if (this.known) {
      this.map = new DesignMap(stated.map);
      this.surrogates = new Surrogates(stated.surrogates);
    }
  }

  // Designs, means, deviations and probabilities for many rows of thresholds.
  many(rows) {
    const { problem, surrogates } = this;
    const count = rows.length;
    const x = this.map.designs(Float64Array.from(rows.flatMap((row) => problem.theta(row))), count);
    const d = problem.variables.length;
    const points = rows.map((_, b) => {
      const { point, unit } = problem.legal(x.subarray(b * d, (b + 1) * d));
      x.set(unit, b * d);
      return point;
    });
    const { mean, std } = surrogates.moments(x, count);
    const q = problem.outputs.length;
    return rows.map((thresholds, b) => {
      const answer = {
        thresholds,
        point: points[b],
        mean: Array.from(mean.subarray(b * q, (b + 1) * q)),
        std: Array.from(std.subarray(b * q, (b + 1) * q)),
      };
      answer.probability = problem.probability(answer.mean, answer.std, thresholds);
      answer.status = answer.probability >= UNLIKELY ? "predicted" : "unreachable";
      return answer;
    });
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

  #strictest(constraint, evaluation) {
    const needed = Math.max(
      ...constraint.outputs.map((name) => constraint.sign * evaluation.outputs[this.problem.outputs.indexOf(name)]),
    );
    return constraint.sign * Math.max(needed, constraint.sign * constraint.strictest);
  }
}

export function standing(room, std, scale) {
  if (room < -Math.max(std, 1e-9 * scale)) return "violated";
  return room <= Math.max(2 * std, CLOSE * scale) ? "active" : "slack";
}
