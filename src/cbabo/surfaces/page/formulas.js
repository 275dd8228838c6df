// Formulas as lists of steps, as Python reads them: values, and exact derivatives by what they depend on.
//
// A step is ["number", value], ["name", name], or an operation with the numbers of the earlier steps that it is computed from. Nothing
// of a formula is ever run as a script.

// An operation of one operand: its value and derivative.
const UNARY = {
  neg: (a) => [-a, -1],
  abs: (a) => [Math.abs(a), Math.sign(a)],
  sqrt: (a) => [Math.sqrt(a), 0.5 / Math.sqrt(a)],
  exp: (a) => [Math.exp(a), Math.exp(a)],
  log: (a) => [Math.log(a), 1 / a],
  log10: (a) => [Math.log10(a), 1 / (Math.LN10 * a)],
  sin: (a) => [Math.sin(a), Math.cos(a)],
  cos: (a) => [Math.cos(a), -Math.sin(a)],
  tan: (a) => [Math.tan(a), 1 + Math.tan(a) ** 2],
  asin: (a) => [Math.asin(a), 1 / Math.sqrt((1 - a) * (1 + a))],
  acos: (a) => [Math.acos(a), -1 / Math.sqrt((1 - a) * (1 + a))],
  atan: (a) => [Math.atan(a), 1 / (1 + a * a)],
  sinh: (a) => [Math.sinh(a), Math.cosh(a)],
  cosh: (a) => [Math.cosh(a), Math.sinh(a)],
  tanh: (a) => [Math.tanh(a), 1 - Math.tanh(a) ** 2],
};

// An operation of two: its value and both derivatives.
const BINARY = {
  "+": (a, b) => [a + b, 1, 1],
  "-": (a, b) => [a - b, 1, -1],
  "*": (a, b) => [a * b, b, a],
  "/": (a, b) => [a / b, 1 / b, -a / b / b],
  "**": (a, b) => [a ** b, b === 0 ? 0 : b * a ** (b - 1), a ** b * Math.log(a)],
  min: (a, b) => (a <= b ? [a, 1, 0] : [b, 0, 1]),
  max: (a, b) => (a >= b ? [a, 1, 0] : [b, 0, 1]),
};

export class Formula {
  constructor(steps) {
    this.steps = steps;
    this.names = steps.filter(([operation]) => operation === "name").map(([, name]) => name);
  }

  // inputs: values in the order of the names. slopes: whether derivatives are wanted.
  at(inputs, slopes = false) {
    const found = [];
    let next = 0;
    for (const [operation, first, second] of this.steps) {
      if (operation === "number") found.push({ value: first, slopes: null });
      else if (operation === "name") {
        found.push({ value: inputs[next], slopes: slopes ? Float64Array.from(inputs, (_, i) => (i === next ? 1 : 0)) : null });
        next++;
      } else if (second === undefined) {
        const [value, rise] = UNARY[operation](found[first].value);
        found.push({ value, slopes: combined(found[first].slopes, rise, null, 0) });
      } else {
        const [a, b] = [found[first], found[second]];
        const [value, byA, byB] = BINARY[operation](a.value, b.value);
        found.push({ value, slopes: combined(a.slopes, byA, b.slopes, byB) });
      }
    }
    return found.at(-1);
  }
}

// What does not vary has no derivatives: a factor that is not finite must not be multiplied by their zeros.
function combined(a, byA, b, byB) {
  if (!a && !b) return null;
  if (!b) return a.map((g) => byA * g);
  if (!a) return b.map((g) => byB * g);
  return a.map((g, i) => byA * g + byB * b[i]);
}
