// The problem: where limits may move, what designs are legal, what must obey what.
//
// thresholds: limits in natural units, in the order of the movable constraints. theta: the same from strictest (0) to most
// relaxed (1), and outside [0, 1] where a limit lies outside its range. A requirement is one output that must obey one limit.

import { general } from "./numbers.js";
import { Region } from "./region.js";

export class Problem {
  // tuning: the numbers that the document shares with Python.
  constructor(stated, tuning) {
    Object.assign(this, stated, { tuning });
    this.movable = this.constraints.filter((c) => c.limit === null);
    for (const c of this.constraints) {
      c.sign = c.sense === "<=" ? 1 : -1;
      c.scale = c.limit === null ? c.high - c.low : Math.abs(c.limit) || 1;
      c.strictest = c.limit ?? (c.sign > 0 ? c.low : c.high);
      c.relaxed = c.limit ?? (c.sign > 0 ? c.high : c.low);
    }
    this.requirements = this.constraints.flatMap((constraint) =>
      constraint.outputs.map((name) => ({
        constraint,
        name,
        output: this.outputs.indexOf(name),
        at: this.movable.indexOf(constraint),
      })),
    );
    // The columns of the unit cube: one for each variable, of a categorical one as many as it has labels.
    this.columns = this.variables.flatMap((variable) =>
      variable.type === "categorical" ? variable.values.map((label) => ({ variable, label })) : [{ variable, label: null }],
    );
    this.d = this.columns.length;
    this.goal = this.objective.direction === "minimize" ? 1 : -1;
    this.region = stated.region ? new Region(stated.region, this, tuning) : null;
  }

  // The natural value of a number where its column lies in the unit interval, discrete ones interpolated, and its derivative.
  relaxed(i, u) {
    const { low, high, log } = this.columns[i].variable;
    return log ? low * Math.exp(u * Math.log(high / low)) : low + u * (high - low);
  }

  rise(i, u) {
    const { low, high, log } = this.columns[i].variable;
    return log ? this.relaxed(i, u) * Math.log(high / low) : high - low;
  }

  preset(name) {
    return this.movable.map((c) => c[name]);
  }

  // A limit that is very far away counts as one that is as far as can be computed with.
  theta(thresholds) {
    const { farthest } = this.tuning;
    return thresholds.map((t, i) => {
      const { strictest, relaxed } = this.movable[i];
      return Math.min(Math.max((t - strictest) / (relaxed - strictest), -farthest), farthest);
    });
  }

  fromTheta(theta) {
    return theta.map((t, i) => {
      const { strictest, relaxed } = this.movable[i];
      return t === 1 ? relaxed : strictest + t * (relaxed - strictest);
    });
  }

  // theta moved into [0, 1]: for what is only known inside the box.
  inBox(theta) {
    return theta.map((t) => Math.min(Math.max(t, 0), 1));
  }

  // By how much a limit lies outside its range, 0 where it lies inside.
  beyond(constraint, value) {
    const distance = Math.max(constraint.low - value, value - constraint.high);
    return distance > this.tolerance(constraint) ? distance : 0;
  }

  // Sentences that say which limits lie outside their range: Python's.
  outside(thresholds) {
    return this.movable.flatMap((c, i) => {
      const beyond = this.beyond(c, thresholds[i]);
      if (beyond === 0) return [];
      const range = `${general(c.low)} to ${general(c.high)} by ${general(beyond)} (${general((100 * beyond) / c.scale, 3)} % of the range)`;
      return [`${c.name} = ${general(thresholds[i])} lies outside ${range}; no evaluations were planned there`];
    });
  }

  limit(requirement, thresholds) {
    return requirement.at < 0 ? requirement.constraint.limit : thresholds[requirement.at];
  }

  // Slack to every limit: below zero where it is broken.
  slacks(outputs, thresholds) {
    return this.requirements.map((r) => r.constraint.sign * (this.limit(r, thresholds) - outputs[r.output]));
  }

  // which: for each output whether it counts; all unless given.
  obeys(outputs, thresholds, which = null) {
    const slacks = this.slacks(outputs, thresholds);
    return this.requirements.every((r, i) => (which && !which[r.output]) || -slacks[i] <= this.tolerance(r.constraint));
  }

  // By how much a limit may be broken and counts as obeyed: rounding.
  tolerance(constraint) {
    return this.tuning.feasibility_tolerance * constraint.scale;
  }

  // Legal natural values of one design in the unit cube, and the legal design itself.
  legal(x) {
    let column = 0;
    const point = [];
    const unit = this.variables.flatMap((v, i) => {
      const own = Array.from(x.slice(column, column + (v.type === "categorical" ? v.values.length : 1)));
      column += own.length;
      point.push(v.type === "categorical" ? v.values[own.indexOf(Math.max(...own))] : natural(v, Math.min(Math.max(own[0], 0), 1)));
      return v.type === "real" ? own : placed(v, point[i]);
    });
    return { point, unit };
  }

  // Where a design lies in the unit cube.
  unit(point) {
    return this.variables.flatMap((v, i) => placed(v, point[i]));
  }
}

// The columns of one variable's value in the unit cube.
function placed(variable, value) {
  const { low, high, log, type, values } = variable;
  if (type === "categorical") return values.map((label) => (label === value ? 1 : 0));
  return [log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)];
}

function natural(variable, u) {
  const { low, high, type, log } = variable;
  if (type === "real") {
    if (u === 1) return high;
    const value = log ? low * Math.exp(u * Math.log(high / low)) : low + u * (high - low);
    return Math.min(Math.max(value, low), high);
  }
  const value = low + u * (high - low);
  if (type === "integer") {
    const below = Math.min(Math.max(Math.ceil(value) - 1, low), high - 1);
    return value - below <= below + 1 - value ? below : below + 1;
  }
  const right = Math.min(Math.max(variable.values.findIndex((v) => v >= value), 1), variable.values.length - 1);
  const [a, b] = [variable.values[right - 1], variable.values[right]];
  return value - a <= b - value ? a : b;
}
