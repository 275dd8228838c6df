// The limits in the units in which outputs are learned, standardised and warped, and the probability that they are obeyed.
//
// r requirements, each on one output; z and s are means and standard deviations of the outputs. With signs applied every
// requirement reads sign z[output] <= bound.

import { between } from "./numbers.js";

export class Requirements {
  constructor(problem, surrogates) {
    Object.assign(this, { problem, surrogates });
    this.output = problem.requirements.map((r) => r.output);
    this.sign = problem.requirements.map((r) => r.constraint.sign * surrogates.orientation(r.output));
  }

  // The bounds (r) at theta.
  bounds(theta) {
    const thresholds = this.problem.fromTheta(theta);
    return this.problem.requirements.map(
      (r, j) => this.sign[j] * this.surrogates.standardised(r.output, this.problem.limit(r, thresholds)),
    );
  }

  // The probability that a design obeys its bounds; outputs are taken as independent, two limits on one output as one interval.
  // Outputs without a deviation are known to obey theirs; an exact output obeys or not.
  probability(bounds, z, s) {
    const above = Array.from(s, () => Infinity);
    const below = Array.from(s, () => Infinity);
    bounds.forEach((bound, j) => {
      const o = this.output[j];
      if (s[o] === 0) return;
      const side = this.sign[j] > 0 ? above : below;
      let slack = (bound - this.sign[j] * z[o]) / s[o];
      if (this.surrogates.exact?.[o]) slack = slack >= -this.problem.tuning.formulas.exact_slack ? Infinity : -Infinity;
      side[o] = Math.min(side[o], slack);
    });
    return above.reduce((all, top, o) => all * between(-below[o], top), 1);
  }
}
