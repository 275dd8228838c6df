// Which limits to move: intents are asked about, the proposal stands beside the present limits.

import { byId, el, replace, table } from "./dom.js";
import { percent, text } from "./numbers.js";

export class RecommendPanel {
  // ask: resolves to the record of a recommendation for {thresholds, intents}, by limit.
  // rounded: whether proposals are in round steps, as the server's are.
  // pin: keeps limits for comparison, with a note.
  constructor(state, ask, rounded, pin) {
    this.state = state;
    this.pin = pin;
    this.ask = ask;
    this.rounded = rounded;
    this.proposal = null;
    byId("propose").onclick = () => this.#propose();
    byId("accept").onclick = () => this.#accept();
  }

  // A proposal is for the limits from which it was asked.
  update() {
    if (this.proposal && this.proposal.asked.some((t, i) => t !== this.state.thresholds[i])) this.#show(null);
  }

  async #propose() {
    const { movable } = this.state.problem;
    const asked = this.state.thresholds;
    const intents = Object.fromEntries(movable.map((c, i) => [c.name, this.state.intents[i]]));
    const thresholds = Object.fromEntries(movable.map((c, i) => [c.name, asked[i]]));
    const button = byId("propose");
    button.disabled = true;
    byId("recommend").hidden = false;
    replace(byId("proposal"), el("p", { class: "note" }, "Looking for limits …"), el("progress", { "aria-label": "looking for limits" }));
    try {
      this.#show({ asked, found: await this.ask({ thresholds, intents }) });
    } catch (error) {
      this.#show(null);
      byId("recommend").hidden = false;
      replace(byId("proposal"), el("p", { class: "worse" }, error.message));
    }
    button.disabled = false;
  }

  #show(proposal) {
    this.proposal = proposal;
    byId("accept").hidden = proposal === null;
    byId("recommend").hidden = proposal === null;
    if (proposal === null) {
      replace(byId("proposal"));
      return;
    }
    const { found } = proposal;
    const { objective, movable } = this.state.problem;
    const nothing = 1e-6 * Math.max(Math.abs(found.objective_before), Math.abs(found.objective_after));
    const effect = (exact) => {
      const gain = Math.abs(exact) < nothing ? 0 : exact;
      return el("span", { class: gain > 0 ? "better" : gain < 0 ? "worse" : "" }, `${gain > 0 ? "+" : ""}${text(gain, 3)}`);
    };
    const rows = found.changes.map((c) => {
      const unit = movable.find((m) => m.name === c.limit).unit;
      return [`${c.limit}${unit && ` [${unit}]`}`, text(c.before), text(c.after), effect(c.effect)];
    });
    replace(
      byId("proposal"),
      table("Proposal", ["limit", "now", "proposed", "buys"], rows),
      el("p", {}, `${objective.name} ${text(found.objective_before)} → ${text(found.objective_after)} ${objective.unit}: `,
        effect(found.improvement), found.improvement > 0 ? " better" : "", `, feasible with ${percent(found.probability_feasible)}.`),
      this.#alternatives(found),
      ...found.warnings.map(({ warning }) => el("p", { class: "worse" }, warning)),
      el("p", { class: "note" }, "“Buys” is what each change alone does to the objective; above zero is better."),
      this.rounded || found.rounded ? null : el("p", { class: "note", id: "unrounded" },
        "Found by this file itself: limits do not move in round steps, as those of cbabo recommend and of the server do."),
    );
  }

  // The proposal and its alternatives, to be pinned.
  #alternatives(found) {
    const { movable, objective } = this.state.problem;
    const proposed = Object.fromEntries(found.changes.map((c) => [c.limit, c.after]));
    const kept = (limits, words) => el("button", { type: "button", onclick: () => this.pin(movable.map((c) => limits[c.name]), words) }, "Pin");
    const items = (found.alternatives ?? []).map((other) =>
      el("li", {}, `${objective.name} ${text(other.objective_after)} ${objective.unit}, feasible with ${percent(other.probability_feasible)}: `,
        movable.map((c) => `${c.name} ${text(other.limits[c.name])}`).join(", "), " ", kept(other.limits, "alternative of a recommendation")));
    const all = () => {
      this.pin(movable.map((c) => proposed[c.name]), "recommended");
      for (const other of found.alternatives) this.pin(movable.map((c) => other.limits[c.name]), "alternative of a recommendation");
    };
    const pinAll = items.length ? el("button", { type: "button", onclick: all }, "Pin all") : null;
    return el("div", { id: "alternatives" }, el("p", {}, "The proposal: ", kept(proposed, "recommended")), items.length ? el("p", {}, "Alternatives: ", pinAll) : null, el("ul", {}, ...items));
  }

  #accept() {
    const { movable } = this.state.problem;
    const after = Object.fromEntries(this.proposal.found.changes.map((c) => [c.limit, c.after]));
    this.state.set(movable.map((c) => after[c.name]));
  }
}
