// Recommended limits in round steps, as Python's decisions/stepwise.py: a search over moves that people would say aloud.
//
// A candidate is the level of each limit: 0 the present value, then round steps further and further away. The search starts with all
// limits as far as they may go and with every limit moved alone, and then changes limits one by one and together, by what gains most.

const DIGITS = [5, 2, 1];

export class StepSearch {
  // wish: the Proposer, which knows the base, the directions and the scores; now: the present limits, natural units.
  constructor(wish, now) {
    Object.assign(this, { wish, now, problem: wish.problem, tuning: wish.answers.tuning.steps, scores: new Map() });
    this.levels = now.map((value, j) => this.#levelsOf(value, j));
    this.least = this.levels.map((some, j) => (wish.directions[j] < 0 ? Math.min(1, some.length - 1) : 0));
  }

  // Resolves to up to `count` proposals {thresholds, theta, score}, best first and different in kind; none where no limits can be met.
  async propose(count) {
    await this.#judge(this.#starts());
    const met = this.#ranked();
    if (!met.length) return [];
    const [best] = await this.#improved([{ at: met[0], locked: null }], this.tuning.sweeps);
    const kept = await this.#different(best, count);
    return kept.map((at) => ({ thresholds: this.#natural(at), theta: this.#theta(at), score: this.#score(at) }));
  }

  // All limits as far as they may go, and each limit alone; what must be tightened is, at least by a step.
  #starts() {
    const ends = this.levels.map((some) => some.length - 1);
    const loosened = this.least.map((at, j) => (this.wish.directions[j] > 0 ? ends[j] : at));
    return [ends, loosened, this.least, ...ends.map((end, j) => this.least.with(j, end))];
  }

  // Candidates that differ from one in a single limit that is not locked.
  #changes(at, locked) {
    return this.levels.flatMap((some, j) => {
      if (j === locked) return [];
      const { tried } = this.tuning;
      const spread = Array.from({ length: tried }, (_, i) => Math.round(this.least[j] + (i / (tried - 1)) * (some.length - 1 - this.least[j])));
      const near = [at[j] - 1, at[j] + 1].filter((i) => i >= this.least[j] && i < some.length);
      return [...new Set([...spread, ...near])].sort((a, b) => a - b).map((i) => at.with(j, i));
    });
  }

  // The scores of candidates that have none.
  async #judge(some) {
    const fresh = new Map(some.map((at) => [String(at), at]));
    for (const key of this.scores.keys()) fresh.delete(key);
    const all = [...fresh.values()];
    const found = await this.wish.judged(all.map((at) => this.#theta(at)));
    found.forEach((candidate, i) => {
      const movement = candidate.theta.reduce((sum, t, j) => sum + Math.abs(t - this.wish.base[j]), 0);
      const usable = candidate.feasible && this.wish.follows(candidate.theta);
      this.scores.set(String(all[i]), { at: all[i], score: usable ? this.wish.score(candidate) - this.tuning.movement * movement : -Infinity });
    });
  }

  // The best candidates that are found from some, each by changing limits that are not locked for it.
  async #improved(some, sweeps) {
    let ends = some.map(({ at }) => at);
    for (let sweep = 0; sweep < sweeps; sweep++) {
      const changed = ends.map((at, i) => this.#changes(at, some[i].locked));
      await this.#judge(changed.flat());
      const together = ends.map((at, i) => this.#together(at, changed[i]));
      await this.#judge(together);
      const better = ends.map((at, i) => this.#best([at, together[i], ...changed[i]]));
      if (better.every((at, i) => String(at) === String(ends[i]))) break;
      ends = better;
    }
    return ends;
  }

  // All changes of single limits together that are improvements.
  #together(at, changed) {
    return at.map((own, j) => {
      const mine = changed.filter((other) => other[j] !== own);
      const best = mine.length ? this.#best(mine) : at;
      return this.#score(best) > this.#score(at) ? best[j] : own;
    });
  }

  // The best candidate, and others that leave a limit in place which it moves, or move it clearly less far.
  async #different(best, count) {
    const kinds = new Map([[kindOf(best), best]]);
    const back = best.flatMap((i, j) => (i > 0 && this.wish.directions[j] > 0 ? [{ at: best.with(j, 0), locked: j }] : []));
    await this.#judge(back.map(({ at }) => at));
    const order = back.filter(({ at }) => this.#score(at) > -Infinity).sort((a, b) => this.#score(b.at) - this.#score(a.at));
    for (const other of await this.#improved(order.slice(0, count), this.tuning.later_sweeps)) {
      if (other.some((i) => i > 0) && kinds.size < count && !kinds.has(kindOf(other))) kinds.set(kindOf(other), other);
    }
    const byScore = (a, b) => this.#score(b) - this.#score(a);
    const kept = [...kinds.values()].sort(byScore);
    for (const at of kept.length < count ? this.#useful() : []) {
      const theta = this.#theta(at);
      const apart = kept.every((other) => Math.max(...this.#theta(other).map((t, j) => Math.abs(t - theta[j]))) >= this.wish.apart);
      if (kept.length < count && apart && this.#score(at) <= this.#score(kept[0])) kept.push(at);
    }
    return [kept[0], ...kept.slice(1).sort(byScore)];
  }

  // Candidates that can be met, best first, without those of which a part of the loosening does the same.
  #useful() {
    const ranked = this.#ranked();
    const { directions } = this.wish;
    return ranked.filter((at) => {
      const isPart = (other) => other !== at && other.every((i, j) => (directions[j] > 0 ? i <= at[j] : i === at[j]));
      return at.some((i) => i > 0) && !ranked.some((other) => isPart(other) && this.#score(other) >= this.#score(at) - this.tuning.gain);
    });
  }

  #ranked() {
    return [...this.scores.values()].filter(({ score }) => score > -Infinity).sort((a, b) => b.score - a.score).map(({ at }) => at);
  }

  #best(some) {
    return some.reduce((best, at) => (this.#score(at) > this.#score(best) ? at : best));
  }

  #score(at) {
    return this.scores.get(String(at)).score;
  }

  #natural(at) {
    return at.map((i, j) => this.levels[j][i]);
  }

  #theta(at) {
    const theta = this.problem.inBox(this.problem.theta(this.#natural(at)));
    return theta.map((t, j) => (at[j] === 0 ? this.wish.base[j] : t));
  }

  // The values that a limit may take, the present one first.
  #levelsOf(now, j) {
    const constraint = this.problem.movable[j];
    const direction = this.wish.directions[j];
    if (direction === 0) return [now];
    const { scale, strictest, relaxed } = constraint;
    const sign = constraint.sign * direction;
    const last = direction > 0 ? relaxed : strictest;
    const step = roundStep(this.tuning.step * this.wish.settings.range * scale);
    const room = Math.min(sign * (last - now), this.wish.furthest * scale);
    const found = [now];
    for (let i = 1; i <= Math.floor(room / step + 1e-9); i++) found.push(Number((now + sign * step * i).toPrecision(12)));
    const rest = sign * (last - found.at(-1));
    if (rest > 1e-9 * scale && room >= sign * (last - now) - 1e-12 * scale) found.push(last);
    else if (Math.abs(rest) <= 1e-9 * scale && found.length > 1) found[found.length - 1] = last;
    return found;
  }
}

// Which limits a candidate moves.
function kindOf(at) {
  return at.map((i) => i > 0).join();
}

// The largest number of the form 1, 2 or 5 times a power of ten that is not above another.
function roundStep(largest) {
  const power = 10 ** Math.floor(Math.log10(largest) + 1e-9);
  const digit = DIGITS.find((d) => d * power <= largest * (1 + 1e-9));
  return Number((digit * power).toPrecision(12));
}
