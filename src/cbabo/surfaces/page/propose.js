// Recommended limits, found here. From solved thresholds they move in round steps, as Python's; from a network, or where no round
// step can be met, they are found among candidates around the present limits, then in rounds around the best so far.
//
// Limits are normalised: 0 strictest, 1 most relaxed. What is asked of a limit is -1 (tighten), 0 (lock) or +1 (loosen). The
// draws are not Python's, so that proposals differ a little from those of `cbabo recommend`; their scores hardly do.

import { general } from "./numbers.js";
import { StepSearch } from "./stepwise.js";

const SLICE = 16; // Candidates that are answered together.
const TURN = 20; // Milliseconds after which the page may draw.
const ALTERNATIVES = 3;
const ASKED = { tighten: -1, lock: 0, loosen: 1 };
const NOT_FOLLOWED = "no limits that follow all intents are predicted to be feasible; these move some of them the other way";

export class Proposer {
  // answers: the Answers; settings: what the study's settings say about recommendations, as the document states it.
  constructor(answers, settings) {
    Object.assign(this, { answers, problem: answers.problem, settings, tuning: answers.tuning.recommend });
  }

  // Resolves to the record of the best proposal, in the form of the server's; thresholds and intents by limit.
  async propose(thresholds, intents) {
    const names = this.problem.movable.map((c) => c.name);
    const now = names.map((name) => thresholds[name]);
    this.#check(now);
    this.base = this.problem.inBox(this.problem.theta(now));
    this.directions = names.map((name) => ASKED[intents[name] ?? "lock"]);
    const notes = this.#stuck();
    this.random = generator(1);
    const stepped = this.answers.map.library ? await this.#inSteps(now) : [];
    if (stepped.length) return this.#record(now, stepped[0].thresholds, intents, notes, stepped.slice(1));
    const [first, ...later] = this.#sizes();
    let candidates = await this.judged([this.base, ...this.#first(first)]);
    this.present = candidates.shift();
    if (!candidates.some((c) => c.feasible)) throw new Error(this.#why(now));
    for (const [i, size] of later.entries()) {
      const { ranked, followed } = this.#ranked(candidates);
      candidates = candidates.concat(await this.judged(this.#around(ranked, followed, i + 1, size)));
    }
    const { ranked, followed, unit } = this.#ranked(candidates);
    const theta = later.length ? await this.#withoutUseless(ranked[0], unit) : ranked[0].theta;
    const natural = this.problem.fromTheta(theta);
    const after = theta.map((t, i) => (t === this.base[i] ? now[i] : natural[i])); // To the last bit where nothing moved.
    return this.#record(now, after, intents, followed ? notes : [...notes, NOT_FOLLOWED]);
  }

  // Proposals in round steps, best first.
  async #inSteps(now) {
    [this.present] = await this.judged([this.base]);
    return new StepSearch(this, now).propose(1 + ALTERNATIVES);
  }

  // How far a limit may move, and how far two proposals must differ in some limit, normalised.
  get furthest() {
    return this.tuning.furthest * this.settings.range;
  }

  get apart() {
    return this.tuning.different * this.settings.range;
  }

  // How many candidates are tried at first and in each further round.
  #sizes() {
    const { candidates, rounds } = this.settings;
    const later = rounds > 0 ? Math.floor(Math.floor(candidates / 2) / rounds) : 0;
    return [candidates - rounds * later, ...(later > 0 ? Array(rounds).fill(later) : [])];
  }

  // Refuse limits outside the box.
  #check(now) {
    this.problem.movable.forEach((c, i) => {
      if (this.problem.beyond(c, now[i]) === 0) return;
      const range = `between ${general(c.low)} and ${general(c.high)}, got ${general(now[i])}`;
      throw new Error(`recommend: the base of ${c.name} must lie ${range}; start from limits inside the box`);
    });
  }

  // Refuse intents that leave nothing to move; say which limits are at the end of their range already.
  #stuck() {
    const notes = [];
    this.problem.movable.forEach(({ name }, i) => {
      const direction = this.directions[i];
      if (direction < 0 && this.base[i] === 0) notes.push(`${name} is at its strictest already and cannot be tightened further`);
      if (direction > 0 && this.base[i] === 1) notes.push(`${name} is at its loosest already and cannot be loosened further`);
    });
    if (notes.length < this.directions.filter((a) => a !== 0).length) return notes;
    const why = notes.length ? notes.join("; ") : "every limit is locked";
    throw new Error(`recommend: there is nothing to move (${why}); let at least one limit be tightened or loosened`);
  }

  // The same without movements that gain nothing.
  async #withoutUseless(best, unit) {
    let kept = best;
    for (const [i, t] of this.base.entries()) {
      const [back] = await this.judged([kept.theta.with(i, t)]);
      back.score = this.score(back);
      if (back.feasible && back.score >= kept.score - unit && (this.follows(back.theta) || !this.follows(kept.theta))) kept = back;
    }
    return kept.theta;
  }

  // Candidates with what is predicted of them.
  async judged(thetas) {
    const found = [];
    let begun = performance.now();
    for (let i = 0; i < thetas.length; i += SLICE) {
      const some = thetas.slice(i, i + SLICE);
      const ranking = this.answers.rank(some.map((theta) => this.problem.fromTheta(theta)), this.settings.tolerance);
      ranking.forEach((ranked, j) => found.push({ ...ranked, theta: some[j] }));
      if (performance.now() < begun + TURN) continue;
      await new Promise((resolve) => setTimeout(resolve));
      begun = performance.now();
    }
    return found;
  }

  // Guided candidates, which follow the intents, and exploring ones; locked limits do not move.
  #first(count) {
    const { base, directions, random } = this;
    const { range, guided } = this.settings;
    return Array.from({ length: count }, (_, n) =>
      base.map((t, i) => {
        if (directions[i] === 0) return t;
        const step = n < Math.round(guided * count) ? directions[i] * 0.5 * Math.abs(random.normal()) : 0.4 * random.normal();
        return clipped(t + range * step, 0, 1);
      }),
    );
  }

  // Around the best ones; where they follow the intents, these do too.
  #around(ranked, followed, round, size) {
    const { base, directions, random, tuning } = this;
    const { range } = this.settings;
    const best = ranked.slice(0, tuning.parents);
    const width = 0.5 * range * tuning.narrower ** round;
    const moved = Math.max(tuning.moved, 1 / base.length);
    const far = tuning.furthest * range;
    const least = (1 + 1e-9) * tuning.least_tightening * range; // Rounding must not lead below the least tightening.
    const less = directions.map((a) => (followed && a > 0 ? 0 : far));
    const more = directions.map((a) => (followed && a < 0 ? -least : far));
    return Array.from({ length: size }, (_, n) =>
      best[n % best.length].theta.map((t, i) => {
        if (directions[i] === 0) return t;
        const step = random.uniform() < moved ? width * random.normal() : 0;
        return clipped(clipped(t + step, base[i] - less[i], base[i] + more[i]), 0, 1);
      }),
    );
  }

  // Feasible candidates, best first, those that follow all intents before all others; of equals that which changes less.
  #ranked(candidates) {
    const feasible = candidates.filter((c) => c.feasible);
    const follow = feasible.filter((c) => this.follows(c.theta));
    const some = follow.length ? follow : feasible;
    some.forEach((c) => (c.score ??= this.score(c)));
    let [least, most] = [Infinity, -Infinity];
    for (const { score } of some) [least, most] = [Math.min(least, score), Math.max(most, score)];
    const unit = Math.max(most - least, 1) * this.tuning.equal;
    const keyed = some.map((c) => ({ ...c, step: Math.round(c.score / unit), changed: c.theta.reduce((sum, t, i) => sum + Math.abs(t - this.base[i]), 0) }));
    return { ranked: keyed.sort((a, b) => b.step - a.step || a.changed - b.changed), followed: follow.length > 0, unit };
  }

  // Locked limits are equal; those to be tightened become tighter by more than a little, if they can; those that may be loosened
  // do not become tighter.
  follows(theta) {
    const least = this.tuning.least_tightening * this.settings.range;
    return theta.every((t, i) => {
      const delta = t - this.base[i];
      if (this.directions[i] === 0) return delta === 0;
      return this.directions[i] > 0 ? delta >= 0 : -delta >= Math.min(least, this.base[i]);
    });
  }

  score({ theta, value }) {
    const { objective, reward, barrier } = this.settings;
    const { allowance, allowance_share } = this.tuning;
    let [tightened, relaxed, excessive] = [0, 0, 0];
    theta.forEach((t, i) => {
      const delta = t - this.base[i];
      if (this.directions[i] < 0) tightened += Math.max(-delta, 0);
      if (this.directions[i] <= 0) relaxed += Math.max(delta, 0);
      if (this.directions[i] > 0) excessive += Math.max(delta - Math.max(allowance_share * this.base[i], allowance), 0) ** 2;
    });
    return objective * (this.present.value - value) + reward * (tightened - excessive) - barrier * relaxed;
  }

  // alternatives: in round steps; null where the proposal is not.
  #record(now, after, intents, warnings, alternatives = null) {
    const { movable, goal } = this.problem;
    const singly = after.map((value, i) => now.with(i, value));
    const others = (alternatives ?? []).map((other) => other.thresholds);
    const [before, chosen, ...rest] = this.answers.many([now, after, ...singly, ...others]);
    const alone = rest.slice(0, singly.length);
    const gain = (answer) => goal * (before.mean[0] - answer.mean[0]);
    return {
      objective_before: before.mean[0],
      objective_after: chosen.mean[0],
      improvement: gain(chosen),
      probability_feasible: chosen.probability,
      warnings: warnings.map((warning) => ({ warning })),
      changes: movable.map((c, i) => ({
        limit: c.name,
        intent: intents[c.name] ?? "lock",
        before: now[i],
        after: after[i],
        effect: gain(alone[i]),
      })),
      rounded: alternatives !== null,
      alternatives: others.map((limits, i) => ({
        objective_after: rest[singly.length + i].mean[0],
        improvement: gain(rest[singly.length + i]),
        probability_feasible: rest[singly.length + i].probability,
        limits: Object.fromEntries(movable.map((c, j) => [c.name, limits[j]])),
      })),
    };
  }

  #why(now) {
    const closest = this.answers.closest(now);
    if (closest === null) return "recommend: no limits near the base can be met, as the model predicts; start from more relaxed limits";
    const stated = closest.map((value, i) => `${this.problem.movable[i].name} = ${general(value)}`).join(", ");
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
