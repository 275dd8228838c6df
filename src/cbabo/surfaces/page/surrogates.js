// The Gaussian processes of all outputs: means, their derivatives and deviations at any design.
//
// n evaluations, d variables, q outputs; x is in the unit cube. z and s are means and deviations of the standardised, warped
// outputs: z = constant + k'a, s^2 = 1 - |v|^2 with L v = k, or (1 - |v|^2 + nugget noise) amplitude where there is one. The factors L
// are made here: they would be most of the document.

import { decoded, dot } from "./numbers.js";

const ABREAST = 4; // designs whose deviations are found together: every element of a factor is then read once for four
const [ROUGH, ADDITIVE] = [1, 2]; // kernels other than the smooth one

export class Surrogates {
  // tuning: the numbers that the document shares with Python.
  constructor(stated, tuning) {
    this.tuning = tuning;
    [this.n, this.d] = stated.x.shape;
    this.q = stated.noise.shape[0];
    for (const [name, array] of Object.entries(stated)) this[name] = array && decoded(array);
    this.family ??= new Float64Array(this.q);
    this.nugget ??= new Float64Array(this.q).fill(1);
    this.rows = Array.from({ length: this.q }, (_, j) => this.#scaled(this.x, this.n, j).points);
    this.factors = [];
  }

  // Means (count x q) at x (count x d).
  means(x, count) {
    return this.#each(x, count, false).z;
  }

  // Means, and their derivatives (count x q x d).
  meansAndSlopes(x, count) {
    return this.#each(x, count, true);
  }

  // Means and deviations (count x q each).
  moments(x, count) {
    const size = count * this.q;
    return { z: this.means(x, count), s: this.renewed(new Float64Array(size), x, count, new Uint8Array(size).fill(1)) };
  }

  // Deviations (count x q) where they are asked for, and what is given elsewhere.
  renewed(given, x, count, asked) {
    const { n, q } = this;
    const s = given.slice();
    const k = new Float64Array(n);
    const together = new Float64Array(n * ABREAST);
    const square = new Float64Array(ABREAST);
    for (let j = 0; j < q; j++) {
      const rows = Array.from({ length: count }, (_, b) => b).filter((b) => asked[b * q + j]);
      if (!rows.length) continue;
      const { points } = this.#scaled(x, count, j);
      for (let first = 0; first < rows.length; first += ABREAST) {
        const some = rows.slice(first, first + ABREAST);
        some.forEach((b, place) => {
          this.#correlations(points, b, j, k);
          for (let i = 0; i < n; i++) together[i * ABREAST + place] = k[i];
        });
        if (some.length === 1) square[0] = squareOfSolution(this.#factor(j), k, n);
        else squaresOfSolutions(this.#factor(j), together, n, square);
        some.forEach((b, place) => (s[b * q + j] = this.#deviation(j, square[place])));
      }
    }
    return s;
  }

  // An output j as it is learned.
  warped(j, y) {
    if (!this.warp_width) return y;
    const [o, c, w] = [this.warp_orientation[j], this.warp_centre[j], this.warp_width[j]];
    return Number.isFinite(w) ? c + w * Math.asinh((o * y - c) / w) : o * y;
  }

  // The same in units of its standard deviation, as z.
  standardised(j, y) {
    return (this.warped(j, y) - this.centre[j]) / this.scale[j];
  }

  // The median and half of the central 68 % of output j, in its natural unit, for standardised z and s.
  natural(j, z, s) {
    const mean = this.centre[j] + this.scale[j] * z;
    const std = this.scale[j] * s;
    if (!this.warp_width) return { mean, std };
    const [o, c, w] = [this.warp_orientation[j], this.warp_centre[j], this.warp_width[j]];
    if (!Number.isFinite(w)) return { mean: o * mean, std };
    const most = this.tuning.max_argument;
    const inverse = (g) => o * (c + w * Math.sinh(Math.min(Math.max((g - c) / w, -most), most)));
    return { mean: inverse(mean), std: 0.5 * Math.abs(inverse(mean + std) - inverse(mean - std)) };
  }

  // The derivative of output j, in its natural unit, by z.
  rise(j, z) {
    if (!this.warp_width) return this.scale[j];
    const [o, c, w] = [this.warp_orientation[j], this.warp_centre[j], this.warp_width[j]];
    if (!Number.isFinite(w)) return o * this.scale[j];
    const most = this.tuning.max_argument;
    return o * this.scale[j] * Math.cosh(Math.min(Math.max((this.centre[j] + this.scale[j] * z - c) / w, -most), most));
  }

  orientation(j) {
    return this.warp_orientation ? this.warp_orientation[j] : 1;
  }

  #each(x, count, slopes) {
    const { n, d, q } = this;
    const z = new Float64Array(count * q);
    const J = slopes ? new Float64Array(count * q * d) : null;
    const k = new Float64Array(n);
    for (let j = 0; j < q; j++) {
      const { points, rise } = this.#scaled(x, count, j);
      for (let b = 0; b < count; b++) {
        if (slopes) this.#pull(points, rise, b, j, k, J.subarray((b * q + j) * d, (b * q + j + 1) * d));
        else this.#correlations(points, b, j, k);
        z[b * q + j] = this.constant[j] + dot(k, 0, this.weights, j * n, n);
      }
    }
    return { z, J };
  }

  // Points as kernel j sees them, over its lengthscales, and the derivative of that by x.
  #scaled(x, count, j) {
    const { d } = this;
    const points = new Float64Array(count * d);
    const rise = new Float64Array(count * d);
    for (let i = 0; i < count * d; i++) {
      const l = this.lengthscales[j * d + (i % d)];
      const a = this.stretch ? this.stretch[j * d + (i % d)] : 0;
      const growth = Math.expm1(a);
      points[i] = (a === 0 ? x[i] : Math.log(1 + growth * x[i]) / a) / l;
      rise[i] = (a === 0 ? 1 : growth / (a * (1 + growth * x[i]))) / l;
    }
    return { points, rise };
  }

  // Correlations k of point b with the data.
  #correlations(points, b, j, k) {
    const { n, d } = this;
    const rows = this.rows[j];
    const [rough, additive] = [this.family[j] === ROUGH, this.family[j] === ADDITIVE];
    for (let i = 0; i < n; i++) {
      let square = 0;
      let sum = 0;
      for (let c = 0; c < d; c++) {
        const apart = points[b * d + c] - rows[i * d + c];
        square += apart * apart;
        if (additive) sum += Math.exp(-0.5 * apart * apart);
      }
      if (additive) k[i] = sum / d;
      else if (rough) {
        const e = Math.sqrt(5 * square);
        k[i] = (1 + e + (e * e) / 3) * Math.exp(-e);
      } else k[i] = Math.exp(-0.5 * square);
    }
  }

  // The same, and the derivatives (d) of mean j by x.
  #pull(points, rise, b, j, k, slopes) {
    const { n, d } = this;
    const rows = this.rows[j];
    const [rough, additive] = [this.family[j] === ROUGH, this.family[j] === ADDITIVE];
    const away = new Float64Array(d);
    const part = new Float64Array(d);
    for (let i = 0; i < n; i++) {
      const weight = this.weights[j * n + i];
      let square = 0;
      let sum = 0;
      for (let c = 0; c < d; c++) {
        away[c] = rows[i * d + c] - points[b * d + c];
        square += away[c] * away[c];
        if (additive) sum += part[c] = Math.exp(-0.5 * away[c] * away[c]) / d;
      }
      if (additive) {
        k[i] = sum;
        for (let c = 0; c < d; c++) slopes[c] += weight * part[c] * away[c];
        continue;
      }
      const e = rough ? Math.sqrt(5 * square) : 0;
      const decay = Math.exp(rough ? -e : -0.5 * square);
      k[i] = rough ? (1 + e + (e * e) / 3) * decay : decay;
      const pull = weight * (rough ? (5 / 3) * (1 + e) * decay : decay);
      for (let c = 0; c < d; c++) slopes[c] += pull * away[c];
    }
    for (let c = 0; c < d; c++) slopes[c] *= rise[b * d + c];
  }

  #deviation(j, square) {
    const variance = Math.max(1 - square, this.tuning.min_variance);
    return Math.sqrt(this.amplitude ? (variance + this.nugget[j] * this.noise[j]) * this.amplitude[j] : variance);
  }

  // The Cholesky factor of output j, row by row, without the zeros; made when first needed.
  #factor(j) {
    if (this.factors[j]) return this.factors[j];
    const { n } = this;
    const L = new Float64Array((n * (n + 1)) / 2);
    const k = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      this.#correlations(this.rows[j], i, j, k);
      k[i] = 1 + this.noise[j] * (this.relative_noise ? this.relative_noise[j * n + i] : 1);
      const start = (i * (i + 1)) / 2;
      for (let c = 0; c <= i; c++) {
        const other = (c * (c + 1)) / 2;
        const rest = k[c] - dot(L, start, L, other, c);
        L[start + c] = c < i ? rest / L[other + c] : Math.sqrt(rest);
      }
    }
    this.factors[j] = L;
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
