// The Gaussian processes of all outputs: means and deviations at any design.
//
// n evaluations, d variables, q outputs; x is in the unit cube, results are in natural units.
// mean = centre + scale (constant + k'a), deviation = scale sqrt(1 - |v|^2) with L v = k. The factors L are made here: they
// would be most of the document.

import { decoded, dot } from "./numbers.js";

const LEAST_VARIANCE = 1e-12;
const WIDTH = 4; // designs whose deviations are found together: every element of a factor is then read once for four

export class Surrogates {
  constructor(stated) {
    [this.n, this.d] = stated.x.shape;
    this.q = stated.noise.shape[0];
    this.x = decoded(stated.x);
    for (const name of ["lengthscales", "noise", "constant", "centre", "scale", "weights"]) {
      this[name] = decoded(stated[name]);
    }
    this.rows = Array.from({ length: this.q }, (_, j) => this.#scaled(this.x, this.n, j));
    this.factors = Array.from({ length: this.q }, (_, j) => this.#factor(j));
  }

  // Means and deviations (count x q each) at x (count x d).
  moments(x, count) {
    const { n, q } = this;
    const mean = new Float64Array(count * q);
    const std = new Float64Array(count * q);
    const k = new Float64Array(n);
    const together = new Float64Array(n * WIDTH);
    const square = new Float64Array(WIDTH);
    for (let j = 0; j < q; j++) {
      const queries = this.#scaled(x, count, j);
      for (let first = 0; first < count; first += WIDTH) {
        const last = Math.min(first + WIDTH, count);
        for (let b = first; b < last; b++) {
          this.#correlations(queries, b, j, k);
          mean[b * q + j] = this.centre[j] + this.scale[j] * (this.constant[j] + dot(k, 0, this.weights, j * n, n));
          for (let i = 0; i < n; i++) together[i * WIDTH + b - first] = k[i];
        }
        if (last - first === 1) square[0] = squareOfSolution(this.factors[j], k, n);
        else squaresOfSolutions(this.factors[j], together, n, square);
        for (let b = first; b < last; b++) {
          std[b * q + j] = this.scale[j] * Math.sqrt(Math.max(1 - square[b - first], LEAST_VARIANCE));
        }
      }
    }
    return { mean, std };
  }

  #scaled(x, count, j) {
    const { d } = this;
    return Float64Array.from({ length: count * d }, (_, i) => x[i] / this.lengthscales[j * d + (i % d)]);
  }

  #correlations(queries, b, j, k) {
    const { n, d } = this;
    const rows = this.rows[j];
    for (let i = 0; i < n; i++) {
      let square = 0;
      for (let c = 0; c < d; c++) {
        const apart = queries[b * d + c] - rows[i * d + c];
        square += apart * apart;
      }
      k[i] = Math.exp(-0.5 * square);
    }
  }

  // The Cholesky factor of output j, row by row, without the zeros.
  #factor(j) {
    const { n } = this;
    const L = new Float64Array((n * (n + 1)) / 2);
    const k = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      this.#correlations(this.rows[j], i, j, k);
      k[i] = 1 + this.noise[j];
      const start = (i * (i + 1)) / 2;
      for (let c = 0; c <= i; c++) {
        const other = (c * (c + 1)) / 2;
        const rest = k[c] - dot(L, start, L, other, c);
        L[start + c] = c < i ? rest / L[other + c] : Math.sqrt(rest);
      }
    }
    return L;
  }
}

// |v|^2 for L v = k; k is overwritten by v.
function squareOfSolution(L, k, n) {
  let square = 0;
  for (let i = 0, start = 0; i < n; start += ++i) {
    k[i] = (k[i] - dot(L, start, k, 0, i)) / L[start + i];
    square += k[i] * k[i];
  }
  return square;
}

// The same for four k at once, which stand side by side.
function squaresOfSolutions(L, v, n, square) {
  square.fill(0);
  for (let i = 0, start = 0; i < n; start += ++i) {
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    for (let c = 0, at = 0; c < i; c++, at += 4) {
      const l = L[start + c];
      s0 += l * v[at];
      s1 += l * v[at + 1];
      s2 += l * v[at + 2];
      s3 += l * v[at + 3];
    }
    const pivot = 1 / L[start + i];
    const at = 4 * i;
    v[at] = (v[at] - s0) * pivot;
    v[at + 1] = (v[at + 1] - s1) * pivot;
    v[at + 2] = (v[at + 2] - s2) * pivot;
    v[at + 3] = (v[at + 3] - s3) * pivot;
    for (let c = 0; c < 4; c++) square[c] += v[at + c] * v[at + c];
  }
}
