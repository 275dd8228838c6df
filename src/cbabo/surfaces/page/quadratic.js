// One small quadratic program, by an interior-point method with a fixed number of iterations: as Python's qp, step by step.
//
// Sought is p (d): the least g'p + p'Hp / 2 + mu sum(s), with A p <= c + s, s >= 0, low <= p <= high; A is r x d, H d x d, both
// row by row. `near` holds w, s, p - low, high - p and `far` their multipliers: what must stay above zero, and whose products
// all go to zero together.

export class QuadraticProgram {
  // tuning: of programs, as the document states it.
  constructor(d, r, tuning) {
    Object.assign(this, { d, r, tuning });
    const count = 2 * (r + d);
    for (const name of ["near", "far", "ratio", "product", "dnear", "dfar", "aim"]) this[name] = new Float64Array(count);
    for (const name of ["slope", "rest", "dp"]) this[name] = new Float64Array(d);
    for (const name of ["D", "gap"]) this[name] = new Float64Array(r);
    this.L = new Float64Array(d * d);
  }

  // Returns {p, multipliers}.
  minimise(g, H, A, c, low, high, mu, iterations = this.tuning.iterations) {
    const { d, r, near, far, product, dnear, dfar, aim } = this;
    const p = Float64Array.from(g, (_, i) => {
      const edge = this.tuning.central * (high[i] - low[i]);
      return Math.min(Math.max(0, low[i] + edge), high[i] - edge);
    });
    this.#start(p, g, H, A, c, low, high, mu);
    const count = near.length;
    for (let iteration = 0; iteration < iterations; iteration++) {
      let tau = 0;
      for (let i = 0; i < count; i++) {
        product[i] = near[i] * far[i];
        tau += product[i];
        aim[i] = -product[i];
      }
      tau /= count;
      this.#factor(p, g, H, A);
      this.#direction(A);
      const a = this.#longest();
      let ahead = 0;
      for (let i = 0; i < count; i++) ahead += (near[i] + a * dnear[i]) * (far[i] + a * dfar[i]);
      ahead /= count;
      const target = Math.max((ahead / tau) ** 2 * tau, this.tuning.converged);
      for (let i = 0; i < count; i++) aim[i] = target - product[i] - a * a * dnear[i] * dfar[i];
      this.#direction(A);
      const b = this.#longest();
      if (!this.#sound(b)) break; // it has run out of digits and would stay where it is
      for (let i = 0; i < count; i++) {
        near[i] += b * dnear[i];
        far[i] += b * dfar[i];
      }
      for (let i = 0; i < d; i++) p[i] += b * dnear[2 * r + i];
    }
    return { p, multipliers: far.slice(0, r) };
  }

  // A program that hardly differs from one with these multipliers, around p = 0: it is guessed what holds rows (1 nothing, 2 held
  // at c, 3 violated) and variables (-1 low, 0 nothing, 1 high), until the solution agrees. Returns {p, multipliers}.
  continued(g, H, A, c, low, high, mu, multipliers, guesses = this.tuning.guesses, iterations = this.tuning.iterations) {
    const { d, r } = this;
    const soft = Float64Array.from(c, (_, j) => {
      let sum = this.tuning.singular;
      for (let i = 0; i < d; i++) sum += (A[j * d + i] / H[i * d + i]) * A[j * d + i];
      return sum;
    });
    const slopes = (p, lam) =>
      g.map((value, i) => {
        let sum = value + row(H, i, p, d);
        for (let j = 0; j < r; j++) sum += A[j * d + i] * lam[j];
        return sum;
      });
    const held = (p, lam, slope) => ({
      rows: Array.from(c, (bound, j) => 2 + side(lam[j] - (bound - row(A, j, p, d)) / soft[j], 0, mu)),
      at: Array.from(p, (value, i) => side(value - slope[i] / H[i * d + i], low[i], high[i])),
    });
    const nowhere = new Float64Array(d);
    let guess = held(nowhere, multipliers, slopes(nowhere, multipliers));
    for (let tried = 0; tried < guesses; tried++) {
      const found = this.#solved(guess, H, A, c, low, high, mu, soft, slopes);
      const slope = slopes(found.p, found.multipliers).map((value, i) => (guess.at[i] === 0 ? 0 : value));
      const next = held(found.p, found.multipliers, slope);
      const finite = [...found.p, ...found.multipliers].every(Number.isFinite);
      if (finite && same(next.rows, guess.rows) && same(next.at, guess.at)) return found;
      guess = next;
    }
    return this.minimise(g, H, A, c, low, high, mu, iterations);
  }

  // p and the multipliers if the guess is right: one linear system.
  #solved({ rows, at }, H, A, c, low, high, mu, soft, slopes) {
    const { d, r } = this;
    const n = d + r;
    const K = new Float64Array(n * n);
    const violated = Float64Array.from(rows, (state) => (state === 3 ? mu : 0));
    const push = slopes(new Float64Array(d), violated);
    const y = new Float64Array(n);
    for (let i = 0; i < d; i++) {
      if (at[i] !== 0) {
        K[i * n + i] = 1;
        y[i] = at[i] < 0 ? low[i] : high[i];
        continue;
      }
      for (let e = 0; e < d; e++) K[i * n + e] = H[i * d + e];
      for (let j = 0; j < r; j++) if (rows[j] === 2) K[i * n + d + j] = A[j * d + i];
      y[i] = -push[i];
    }
    for (let j = 0; j < r; j++) {
      const active = rows[j] === 2;
      K[(d + j) * n + d + j] = active ? -this.tuning.regularisation * soft[j] : 1;
      if (!active) continue;
      for (let i = 0; i < d; i++) K[(d + j) * n + i] = A[j * d + i];
      y[d + j] = c[j];
    }
    eliminate(K, y, n);
    return { p: y.slice(0, d), multipliers: Float64Array.from(rows, (state, j) => (state === 2 ? y[d + j] : violated[j])) };
  }

  #start(p, g, H, A, c, low, high, mu) {
    const { d, r, near, far } = this;
    const slack = Float64Array.from(c, (value, j) => value - row(A, j, p, d));
    const largest = Math.max(1e-2, ...slack.map(Math.abs));
    for (let j = 0; j < r; j++) {
      near[j] = 0.5 * (slack[j] + Math.sqrt(slack[j] ** 2 + largest ** 2));
      near[r + j] = near[j] - slack[j];
      far[j] = Math.min(0.1 * mu, 1);
      far[r + j] = mu - far[j];
    }
    for (let i = 0; i < d; i++) {
      let slope = g[i] + row(H, i, p, d);
      for (let j = 0; j < r; j++) slope += A[j * d + i] * far[j];
      near[2 * r + i] = p[i] - low[i];
      near[2 * r + d + i] = high[i] - p[i];
      const larger = 0.5 * (Math.abs(slope) + Math.sqrt(slope ** 2 + 1));
      far[2 * r + i] = slope > 0 ? larger : 0.25 / larger;
      far[2 * r + d + i] = slope > 0 ? 0.25 / larger : larger; // their difference is the slope
    }
  }

  // The system of one iteration, factored once for predictor and corrector.
  #factor(p, g, H, A) {
    const { d, r, near, far, ratio, D, L, rest } = this;
    for (let i = 0; i < near.length; i++) ratio[i] = far[i] / near[i];
    for (let j = 0; j < r; j++) D[j] = 1 / (1 / ratio[j] + 1 / ratio[r + j]);
    for (let i = 0; i < d; i++) {
      let back = 0;
      for (let j = 0; j < r; j++) back += A[j * d + i] * far[j];
      rest[i] = -(g[i] + row(H, i, p, d) + back - far[2 * r + i] + far[2 * r + d + i]);
      for (let e = 0; e <= i; e++) {
        let sum = H[i * d + e];
        for (let j = 0; j < r; j++) sum += A[j * d + i] * D[j] * A[j * d + e];
        L[i * d + e] = sum;
      }
      L[i * d + i] += ratio[2 * r + i] + ratio[2 * r + d + i];
    }
    cholesky(L, d, this.tuning.singular);
  }

  // How near and far change so that each product changes by aim, to first order.
  #direction(A) {
    const { d, r, near, far, ratio, D, L, rest, gap, dp, dnear, dfar, aim } = this;
    for (let j = 0; j < r; j++) gap[j] = aim[j] / far[j] - aim[r + j] / far[r + j];
    for (let i = 0; i < d; i++) {
      let back = 0;
      for (let j = 0; j < r; j++) back += A[j * d + i] * D[j] * gap[j];
      const [lower, upper] = [2 * r + i, 2 * r + d + i];
      dp[i] = rest[i] - back + aim[lower] / near[lower] - aim[upper] / near[upper];
    }
    solve(L, dp, d);
    for (let j = 0; j < r; j++) {
      const change = D[j] * (row(A, j, dp, d) + gap[j]);
      dnear[j] = aim[j] / far[j] - change / ratio[j];
      dnear[r + j] = aim[r + j] / far[r + j] + change / ratio[r + j];
      dfar[j] = change;
      dfar[r + j] = -change;
    }
    for (let i = 0; i < d; i++) {
      dnear[2 * r + i] = dp[i];
      dnear[2 * r + d + i] = -dp[i];
    }
    for (let i = 2 * r; i < near.length; i++) dfar[i] = aim[i] / near[i] - ratio[i] * dnear[i];
  }

  // Whether everything is above zero, and a number, after this share of the step.
  #sound(share) {
    const { near, far, dnear, dfar } = this;
    for (let i = 0; i < near.length; i++) {
      const [a, b] = [near[i] + share * dnear[i], far[i] + share * dfar[i]];
      if (!(a > 0 && b > 0 && Number.isFinite(a + b))) return false;
    }
    return true;
  }

  // The share of the step that keeps everything above zero.
  #longest() {
    const { near, far, dnear, dfar } = this;
    const share = this.tuning.step_fraction;
    let worst = Infinity;
    for (let i = 0; i < near.length; i++) worst = Math.min(worst, dnear[i] / near[i], dfar[i] / far[i]);
    return Math.min(1, share / Math.max(-worst, share));
  }
}

function row(matrix, j, vector, d) {
  let sum = 0;
  for (let i = 0; i < d; i++) sum += matrix[j * d + i] * vector[i];
  return sum;
}

// -1 where a value is not above low, 1 where it is not below high, 0 between.
function side(value, low, high) {
  return (value >= high ? 1 : 0) - (value <= low ? 1 : 0);
}

function same(a, b) {
  return a.every((value, i) => value === b[i]);
}

// Solve K x = y by elimination with row exchanges; x replaces y.
function eliminate(K, y, n) {
  for (let i = 0; i < n; i++) {
    let pivot = i;
    for (let e = i + 1; e < n; e++) if (Math.abs(K[e * n + i]) > Math.abs(K[pivot * n + i])) pivot = e;
    if (pivot !== i) {
      for (let k = i; k < n; k++) [K[i * n + k], K[pivot * n + k]] = [K[pivot * n + k], K[i * n + k]];
      [y[i], y[pivot]] = [y[pivot], y[i]];
    }
    for (let e = i + 1; e < n; e++) {
      const share = K[e * n + i] / K[i * n + i];
      if (share === 0) continue;
      for (let k = i + 1; k < n; k++) K[e * n + k] -= share * K[i * n + k];
      y[e] -= share * y[i];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) y[i] -= K[i * n + k] * y[k];
    y[i] /= K[i * n + i];
  }
}

// The lower factor, in place; its diagonal holds reciprocals, 0 where a pivot is below this share of its element: rounding.
function cholesky(L, d, singular) {
  for (let j = 0; j < d; j++) {
    const least = singular * L[j * d + j];
    for (let i = j; i < d; i++) {
      let sum = L[i * d + j];
      for (let e = 0; e < j; e++) sum -= L[i * d + e] * L[j * d + e];
      L[i * d + j] = sum;
    }
    const pivot = L[j * d + j] > least ? 1 / Math.sqrt(L[j * d + j]) : 0;
    for (let i = j + 1; i < d; i++) L[i * d + j] *= pivot;
    L[j * d + j] = pivot;
  }
}

function solve(L, y, d) {
  for (let j = 0; j < d; j++) {
    y[j] *= L[j * d + j];
    for (let i = j + 1; i < d; i++) y[i] -= L[i * d + j] * y[j];
  }
  for (let j = d - 1; j >= 0; j--) {
    y[j] *= L[j * d + j];
    for (let i = 0; i < j; i++) y[i] -= L[j * d + i] * y[j];
  }
}
