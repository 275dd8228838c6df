// Recommended limits, found here: candidates around the present limits, then rounds around the best so far, as Python's.
//
// Limits are normalised: 0 strictest, 1 most relaxed. What is asked of a limit is -1 (tighten), 0 (lock) or +1 (loosen). The
// draws are not Python's, so that proposals differ a little from those of `cbabo recommend`; what they are worth does not.

const FIRST = 1000;
const ROUNDS = 16;
const EACH = 62;
const SLICE = 16; // candidates that are answered before the page may breathe
const LOCKED = 0.025;
const PARENTS = 8;
const NARROWER = 0.8;
const MOVED = 0.5;
const FURTHEST = 2;
const EQUALLY = 1e-5;
const ASKED = { tighten: -1, lock: 0, loosen: 1 };
const NOT_FOLLOWED = "no limits that follow all intents are believed feasible; these move some of them the other way";

export class Proposer {
  // answers: the Answers; weights: what the study's settings say about recommendations.
  constructor(answers, weights) {
    Object.assign(this, { answers, problem: answers.problem, ...weights });
  }

  // Resolves to the record of the best proposal, in the form of the server's; thresholds and intents by limit.
  async propose(thresholds, intents) {
    const { movable } = this.problem;
    const names = movable.map((c) => c.name);
    const now = names.map((name) => thresholds[name]);
    this.base = this.problem.theta(now);
    this.directions = names.map((name) => ASKED[intents[name] ?? "lock"]);
    this.random = generator(1);
    const [present] = await this.#judged([this.base]);
    let candidates = await this.#judged(this.#first());
    if (!candidates.some((c) => c.feasible)) throw new Error(this.#why(now));
    this.present = present;
    for (let round = 1; round <= ROUNDS; round++) {
      const { ranked, followed } = this.#ranked(candidates);
      candidates = candidates.concat(await this.#judged(this.#around(ranked, followed, round)));
    }
    const { ranked, followed, unit } = this.#ranked(candidates);
    return this.#record(now, this.#limits(await this.#lean(ranked[0], unit)), followed, intents);
  }

  // The same without movements that are worth nothing.
  async #lean(best, unit) {
    let kept = best;
    for (const [i, t] of this.base.entries()) {
      const [back] = await this.#judged([kept.theta.with(i, t)]);
      back.worth = this.#worth(back);
      if (back.feasible && back.worth >= kept.worth - unit && (this.#follows(back.theta) || !this.#follows(kept.theta))) kept = back;
    }
    return kept.theta;
  }

  #limits(theta) {
    return theta.map((t, i) => this.problem.movable[i].strictest + t * (this.problem.movable[i].relaxed - this.problem.movable[i].strictest));
  }

  // Candidates with what is believed of them.
  async #judged(thetas) {
    const found = [];
    for (let i = 0; i < thetas.length; i += SLICE) {
      const some = thetas.slice(i, i + SLICE);
      const answers = this.answers.many(some.map((theta) => this.#limits(theta)));
      answers.forEach((answer, j) => found.push({ theta: some[j], value: answer.value, feasible: this.#feasible(answer) }));
      await new Promise((resolve) => setTimeout(resolve));
    }
    return found;
  }

  // By a network's means; by the probability that a library's answers aim at.
  #feasible(answer) {
    if (!this.answers.map.network) return answer.status !== "unreachable";
    return this.problem.rooms(answer.mean, answer.thresholds).every((room) => room >= -this.tolerance);
  }

  #first() {
    const { base, directions, range, random } = this;
    return Array.from({ length: FIRST }, (_, n) =>
      base.map((t, i) => {
        let step = 0.4 * range * random.normal();
        if (n < this.guided * FIRST) {
          step = directions[i] === 0 ? LOCKED * range * (2 * random.uniform() - 1) : directions[i] * 0.5 * range * Math.abs(random.normal());
        }
        return clipped(t + step, 0, 1);
      }),
    );
  }

  // Around the best ones; where they follow the intents, these do too.
  #around(ranked, followed, round) {
    const { base, directions, range, random } = this;
    const best = ranked.slice(0, PARENTS);
    const width = 0.5 * range * NARROWER ** round;
    const moved = Math.max(MOVED, 1 / base.length);
    const ends = directions.map((a) => {
      const far = followed && a === 0 ? (1 - 1e-9) * LOCKED * range : FURTHEST * range;
      return { less: followed && a > 0 ? 0 : far, more: followed && a < 0 ? -(1 + 1e-9) * LOCKED * range : far };
    });
    return Array.from({ length: EACH }, (_, n) =>
      best[n % best.length].theta.map((t, i) => {
        const step = random.uniform() < moved ? width * random.normal() : 0;
        return clipped(clipped(t + step, base[i] - ends[i].less, base[i] + ends[i].more), 0, 1);
      }),
    );
  }

  // Believed candidates, best first, those that follow all intents before all others; of equals that which changes less.
  #ranked(candidates) {
    const believed = candidates.filter((c) => c.feasible);
    const follow = believed.filter((c) => this.#follows(c.theta));
    const some = follow.length ? follow : believed;
    some.forEach((c) => (c.worth ??= this.#worth(c)));
    const worths = some.map((c) => c.worth);
    const unit = Math.max(Math.max(...worths) - Math.min(...worths), 1) * EQUALLY;
    const keyed = some.map((c) => ({ ...c, step: Math.round(c.worth / unit), changed: c.theta.reduce((sum, t, i) => sum + Math.abs(t - this.base[i]), 0) }));
    return { ranked: keyed.sort((a, b) => b.step - a.step || a.changed - b.changed), followed: follow.length > 0, unit };
  }

  #follows(theta) {
    return theta.every((t, i) => {
      const [delta, still] = [t - this.base[i], LOCKED * this.range];
      if (this.directions[i] === 0) return Math.abs(delta) <= still;
      return this.directions[i] > 0 ? delta >= 0 : -delta >= Math.min(still, this.base[i]);
    });
  }

  #worth({ theta, value }) {
    let [tightened, relaxed, excessive] = [0, 0, 0];
    theta.forEach((t, i) => {
      const delta = t - this.base[i];
      if (this.directions[i] < 0) tightened += Math.max(-delta, 0);
      if (this.directions[i] <= 0) relaxed += Math.max(delta, 0);
      if (this.directions[i] > 0) excessive += Math.max(delta - Math.max(0.05 * this.base[i], 1), 0) ** 2;
    });
    return this.objective * (this.present.value - value) + this.reward * (tightened - excessive) - this.barrier * relaxed;
  }

  #record(now, after, followed, intents) {
    const { movable, goal } = this.problem;
    const singly = after.map((value, i) => now.with(i, value));
    const [before, chosen, ...alone] = this.answers.many([now, after, ...singly]);
    const gain = (answer) => goal * (before.mean[0] - answer.mean[0]);
    return {
      objective_before: before.mean[0],
      objective_after: chosen.mean[0],
      improvement: gain(chosen),
      probability_feasible: chosen.probability,
      warnings: followed ? [] : [{ warning: NOT_FOLLOWED }],
      changes: movable.map((c, i) => ({
        limit: c.name,
        intent: intents[c.name] ?? "lock",
        before: now[i],
        after: after[i],
        effect: gain(alone[i]),
      })),
    };
  }

  #why(now) {
    const closest = this.answers.closest(now);
    if (closest === null) return "recommend: no limits near the base can be met, as the model sees it; start from more relaxed limits";
    const stated = closest.map((value, i) => `${this.problem.movable[i].name} = ${Number(value.toPrecision(6))}`).join(", ");
    return `recommend: no candidate near the base obeys its limits; the nearest that can be met: ${stated}`;
  }
}

function clipped(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// Random numbers that are the same every time: mulberry32, and normal ones by Box and Muller.
function generator(seed) {
  let state = seed;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return { uniform, normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()) };
}
