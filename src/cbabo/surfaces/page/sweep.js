// What each limit does by itself, the others held: the best objective along its range, how far it could go, and what relaxing it
// gains. All of it is found from the page's own answers, in pieces, so that the page stays quick meanwhile.

const POINTS = 13; // along each limit
const ABREAST_SWEPT = 4; // answers at a time
const EDGE_HALVINGS = 6; // of the interval in which a limit ceases to be reachable: it is then known to 0.2 % of the range
const STEP = 0.02; // of a limit's range: the relaxation whose gain is its price
const NOTHING = 1e-6; // of the objective: a smaller gain is none
const LEVEL = 0.02; // of the gain along a limit: nearer than this to its end the objective has levelled off

// A generator that yields between pieces, and returns {curves, prices, reach}: for each limit [{limit, answer}, ...] from strictest to
// most relaxed; {value, std, low, high} or null; {strictest, gainsUntil, gainsAtEnd}.
export function* swept(answers, thresholds) {
  const { movable } = answers.problem;
  const [base] = answers.many([thresholds]);
  const [curves, prices, reach] = [[], [], []];
  for (const [i, constraint] of movable.entries()) {
    const points = [];
    const limits = spaced(constraint, POINTS);
    for (let first = 0; first < POINTS; first += ABREAST_SWEPT) {
      const some = limits.slice(first, first + ABREAST_SWEPT);
      answers.many(some.map((limit) => thresholds.with(i, limit))).forEach((answer, j) => points.push({ limit: some[j], answer }));
      yield;
    }
    curves.push(withoutRises(points, answers.problem.goal));
    reach.push({ strictest: yield* strictestOf(answers, thresholds, i, points), ...gainsOf(curves[i], answers.problem.goal) });
    prices.push(priceOf(answers, thresholds, i, base));
    yield;
  }
  return { curves, prices, reach };
}

// Values of a limit from its strictest to its most relaxed.
export function spaced({ strictest, relaxed }, count) {
  return Array.from({ length: count }, (_, i) => strictest + (i / (count - 1)) * (relaxed - strictest));
}

// The same points, from strict to relaxed, but each with the best answer up to there: what obeys a limit obeys a more relaxed one too.
export function withoutRises(points, goal) {
  let best = null;
  return points.map((point) => {
    if (point.answer.status === "unreachable" && best === null) return point;
    const better = best === null || (point.answer.status !== "unreachable" && goal * point.answer.mean[0] <= goal * best.mean[0]);
    if (better) best = point.answer;
    return better ? point : { ...point, answer: best };
  });
}

// The limits, by index, that gain most over their reachable range, the greatest gain first.
export function byGain(curves, goal) {
  const gains = curves.map((points) => {
    const met = points.filter((p) => p.answer.status !== "unreachable");
    return met.length ? goal * (met[0].answer.mean[0] - met.at(-1).answer.mean[0]) : 0;
  });
  return gains.map((_, i) => i).sort((a, b) => gains[b] - gains[a]);
}

// The strictest value of limit i that can be met while the others are held, or null.
function* strictestOf(answers, thresholds, i, points) {
  const first = points.findIndex((p) => p.answer.status !== "unreachable");
  if (first < 0) return null;
  if (first === 0) return points[0].limit;
  let [out, met] = [points[first - 1].limit, points[first].limit];
  for (let halving = 0; halving < EDGE_HALVINGS; halving++) {
    const middle = 0.5 * (out + met);
    const [answer] = answers.many([thresholds.with(i, middle)]);
    if (answer.status === "unreachable") out = middle;
    else met = middle;
    yield;
  }
  return met;
}

// Up to where relaxing gains, and whether it still does at the end of the range.
function gainsOf(points, goal) {
  const reached = points.filter((p) => p.answer.status !== "unreachable").map((p) => ({ limit: p.limit, value: goal * p.answer.mean[0] }));
  if (!reached.length) return { gainsUntil: null, gainsAtEnd: false };
  const end = reached.at(-1).value;
  const least = Math.max(LEVEL * (reached[0].value - end), NOTHING * Math.abs(end));
  const level = reached.findIndex((p) => p.value - end <= least);
  return { gainsUntil: reached[level].limit, gainsAtEnd: level === reached.length - 1 && reached.length > 1 };
}

// What a small relaxation of limit i gains, per unit; at the end of its range what a small tightening loses.
function priceOf(answers, thresholds, i, base) {
  if (base.status === "unreachable") return null;
  const { low, high, sign, relaxed } = answers.problem.movable[i];
  const step = STEP * (high - low);
  const atEnd = sign * (relaxed - thresholds[i]) < step;
  const other = thresholds[i] + (atEnd ? -1 : 1) * sign * step;
  const [answer] = answers.many([thresholds.with(i, other)]);
  if (answer.status === "unreachable") return null;
  const gain = answers.problem.goal * (base.mean[0] - answer.mean[0]) * (atEnd ? -1 : 1);
  const value = gain > NOTHING * Math.abs(base.mean[0]) ? gain / step : 0;
  return { value, std: 0, low: Math.min(other, thresholds[i]), high: Math.max(other, thresholds[i]) };
}
