// Which limits cannot hold together, and the cheapest ways out, from the page's own answers.

const WAY_HALVINGS = 8; // of the share by which limits are relaxed: it is then known to 0.4 %
const WAYS = 3;
const STARTS = 4; // members of the conflict from which a way out is begun

// A generator that yields between pieces. Returns {limits, probability}: a smallest set of limits, by index, that cannot hold together
// while all others are at their most relaxed; empty where even the most relaxed limits cannot be met.
export function* conflicting(answers, thresholds) {
  const { movable } = answers.problem;
  let held = thresholds;
  const limits = [];
  for (const [i, constraint] of movable.entries()) {
    const without = held.with(i, furthest(constraint, held[i]));
    if (isMet(answers, without)) limits.push(i);
    else held = without;
    yield;
  }
  return { limits, probability: answers.many([held])[0].probability };
}

// A generator of the cheapest relaxations with which these limits can be met, each different in kind. A limit costs 1 for its whole range.
export function* waysOut(answers, thresholds, conflict) {
  const { movable } = answers.problem;
  const found = [];
  for (const first of conflict.slice(0, STARTS)) {
    const moved = yield* enough(answers, thresholds, first);
    if (moved === null || found.some((way) => way.moved.every((i) => moved.includes(i)))) continue;
    const at = (share) => thresholds.map((t, i) => (moved.includes(i) ? t + share * (furthest(movable[i], t) - t) : t));
    let limits = at(yield* leastShare((share) => isMet(answers, at(share))));
    for (const i of moved) {
      const back = (share) => limits.with(i, thresholds[i] + share * (limits[i] - thresholds[i]));
      limits = back(isMet(answers, back(0)) ? 0 : yield* leastShare((share) => isMet(answers, back(share))));
    }
    found.push(wayTo(answers, thresholds, limits));
  }
  return found.sort((a, b) => a.cost - b.cost).slice(0, WAYS);
}

// Limits that suffice when they are relaxed fully, of which this is the first: of each further conflict one is added. null if none suffice.
function* enough(answers, thresholds, first) {
  const { movable } = answers.problem;
  const moved = [first];
  for (;;) {
    const relaxed = thresholds.map((t, i) => (moved.includes(i) ? furthest(movable[i], t) : t));
    yield;
    if (isMet(answers, relaxed)) return moved;
    const next = (yield* conflicting(answers, relaxed)).limits.find((i) => !moved.includes(i));
    if (next === undefined) return null;
    moved.push(next);
  }
}

// The least share, from 0 to 1, at which something holds that holds at 1.
function* leastShare(holds) {
  let [out, met] = [0, 1];
  for (let halving = 0; halving < WAY_HALVINGS; halving++) {
    const middle = 0.5 * (out + met);
    if (holds(middle)) met = middle;
    else out = middle;
    yield;
  }
  return met;
}

function wayTo(answers, before, thresholds) {
  const { movable } = answers.problem;
  const [answer] = answers.many([thresholds]);
  const moved = movable.map((_, i) => i).filter((i) => thresholds[i] !== before[i]);
  const cost = moved.reduce((sum, i) => sum + Math.abs(thresholds[i] - before[i]) / (movable[i].high - movable[i].low), 0);
  return { moved, cost, thresholds, objective: answer.mean[0], std: answer.std[0], probability: answer.probability };
}

// Beyond its range a limit is relaxed enough.
function furthest({ sign, relaxed }, value) {
  return sign * Math.max(sign * relaxed, sign * value);
}

function isMet(answers, thresholds) {
  return answers.many([thresholds])[0].status !== "unreachable";
}
