// What limits cost, how far they could go, what conflicts, and ways out: from the server where it knows, else found here.

import { conflicting, waysOut } from "./conflict.js";
import { swept } from "./sweep.js";
import { generated } from "./work.js";

const REST_BEFORE_EXPLAINING = 400; // milliseconds without movement before an explanation is begun

// An insight: {key, source, prices, reach, conflict, ways, curves}. prices and reach are by limit; source is "server" or "page";
// curves are always the page's own; conflict is {limits, probability}, by index, or null; ways are [{moved, cost, thresholds, ...}].
export class Explainer {
  // server: or null; shown: called with every insight, a better one for the same limits perhaps later.
  constructor(server, shown) {
    Object.assign(this, { server, shown, work: null, timer: null, insight: null });
  }

  // The insight for these limits, if it is known.
  at(key) {
    return this.insight?.key === key ? this.insight : null;
  }

  // The limits are these now: where they have moved, leave the time to them.
  moved(key) {
    if (this.begun !== key) this.pause();
  }

  // Forget everything, because the model is another one.
  forget() {
    this.pause();
    this.insight = null;
  }

  pause() {
    clearTimeout(this.timer);
    this.work?.stop();
    this.asking?.abort();
    this.asking = null;
    this.begun = null;
  }

  // Limits rest. own: whether the answers aim at the study's own probability, for which alone the server explains.
  rest(answers, answer, key, own) {
    if (this.begun === key) return;
    this.pause();
    this.begun = key;
    this.timer = setTimeout(() => {
      if (this.at(key)?.curves) return;
      this.work = generated(this.#here(answers, answer), (found) => this.#take({ key, source: "page", ...found }));
      this.work.go(0);
      if (this.server && own && !answers.map.network) this.#ask(answers, answer, key);
    }, REST_BEFORE_EXPLAINING);
  }

  #take(insight) {
    const known = this.at(insight.key);
    // The server's explanation stays; what the page found besides is added to it.
    this.insight = known?.source === "server" ? { ...insight, ...known, curves: insight.curves } : { ...known, ...insight };
    this.shown(this.insight);
  }

  *#here(answers, answer) {
    const found = yield* swept(answers, answer.thresholds);
    if (answer.status !== "unreachable") return { ...found, conflict: null, ways: [] };
    const conflict = yield* conflicting(answers, answer.thresholds);
    const ways = yield* waysOut(answers, answer.thresholds, conflict.limits);
    return { ...found, conflict, ways };
  }

  async #ask(answers, answer, key) {
    const { movable } = answers.problem;
    const named = Object.fromEntries(movable.map((c, i) => [c.name, answer.thresholds[i]]));
    const asking = new AbortController();
    this.asking = asking;
    // A method that cannot be explained refuses, and then what the page finds stays.
    const record = await this.server.post("explain", { thresholds: named }, asking.signal).catch(() => null);
    if (record === null || asking.signal.aborted) return;
    const curves = this.at(key)?.curves ?? null;
    this.#take({ key, source: "server", curves, ...fromExplanation(answers.problem, record) });
  }
}

// An explanation's record from the server, by index.
function fromExplanation(problem, record) {
  const index = new Map(problem.movable.map((c, i) => [c.name, i]));
  const rows = problem.movable.map((c) => record.prices.find((row) => row.limit === c.name));
  return {
    prices: rows.map(({ price, std, low, high }) => (price === null ? null : { value: price, std, low, high })),
    reach: rows.map((row) => ({ strictest: row.strictest, gainsUntil: row.gains_until, gainsAtEnd: row.gains_at_end })),
    conflict: record.conflict && { limits: record.conflict.limits.map((name) => index.get(name)), probability: record.conflict.probability },
    ways: record.ways_out.map((way) => ({
      moved: way.moved.map((name) => index.get(name)),
      cost: way.cost,
      thresholds: problem.movable.map((c) => way.limits[c.name]),
      objective: way.objective,
      std: 0,
      probability: way.probability_feasible,
    })),
  };
}
