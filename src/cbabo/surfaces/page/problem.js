// The problem: where limits may move, what designs are legal, what must obey what.
//
// thresholds: limits in natural units, in the order of the movable constraints. theta: the same from strictest (0) to most
// relaxed (1). A requirement is one output that must obey one limit.

export class Problem {
  constructor(stated) {
    Object.assign(this, stated);
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
    this.goal = this.objective.direction === "minimize" ? 1 : -1;
  }

  preset(name) {
    return this.movable.map((c) => c[name]);
  }

  theta(thresholds) {
    return thresholds.map((t, i) => {
      const { strictest, relaxed } = this.movable[i];
      return Math.min(Math.max((t - strictest) / (relaxed - strictest), 0), 1);
    });
  }

  limit(requirement, thresholds) {
    return requirement.at < 0 ? requirement.constraint.limit : thresholds[requirement.at];
  }

  // Room to every limit: below zero where it is broken.
  rooms(outputs, thresholds) {
    return this.requirements.map((r) => r.constraint.sign * (this.limit(r, thresholds) - outputs[r.output]));
  }

  obeys(outputs, thresholds) {
    const rooms = this.rooms(outputs, thresholds);
    return this.requirements.every((r, i) => rooms[i] >= -1e-9 * r.constraint.scale);
  }

  // Legal natural values of one design in the unit cube, and the legal design itself.
  legal(x) {
    const point = this.variables.map((v, i) => natural(v, Math.min(Math.max(x[i], 0), 1)));
    const unit = this.variables.map((v, i) => (v.type === "real" ? x[i] : (point[i] - v.low) / (v.high - v.low)));
    return { point, unit };
  }

  // Where a design lies in the unit cube.
  unit(point) {
    return this.variables.map((v, i) =>
      v.log ? Math.log(point[i] / v.low) / Math.log(v.high / v.low) : (point[i] - v.low) / (v.high - v.low),
    );
  }
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
