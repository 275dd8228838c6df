// Spending evaluations on an answer: by the server's evaluator in the background, or by hand through a form.

import { byId, el, replace } from "./dom.js";
import { isMeasured } from "./sentences.js";
import { tokenForm } from "./token.js";

const EVERY = 400; // milliseconds between two looks at a job

export class MeasurePanel {
  // shown: called with the record of what was measured when there is one.
  constructor(problem, server, current, shown) {
    Object.assign(this, { problem, server, current, shown, busy: false, form: null });
    this.verify = el("button", { id: "verify", type: "button", class: "main", onclick: () => this.#spend() }, "Verify");
    this.improve = el("button", { id: "improve", type: "button", onclick: () => this.#spend() }, "Improve");
    this.hand = el("button", { id: "hand-out", type: "button", onclick: () => this.#handOut() }, "Measure by hand");
    byId("actions").append(this.verify, this.improve, this.hand);
  }

  // status: what the server last said; answer: the present one; own: whether it aims at the study's own probability, as what is spent does.
  update(status, answer, own = true) {
    const { evaluator } = status;
    this.own = own;
    const measured = isMeasured(answer);
    this.verify.hidden = this.improve.hidden = !evaluator;
    this.hand.hidden = evaluator || this.form !== null;
    this.verify.disabled = this.busy || measured || !own;
    this.improve.disabled = this.busy || !measured || !own;
    this.hand.disabled = !own;
    this.verify.title = this.hand.title = own ? "one evaluation of this design" : "aim at the study’s own probability to measure: evaluations are spent on its answer";
    this.improve.title = measured ? "one more evaluation, close by" : "verify first";
  }

  // Spend one evaluation: the server goes on where the last call for the same limits ended.
  async #spend() {
    const thresholds = this.current();
    this.busy = true;
    this.verify.disabled = this.improve.disabled = true;
    this.#say("Evaluating …", true);
    try {
      let job = await this.server.post("refine", { thresholds, evaluations: 1 });
      while (job.state === "running") {
        await new Promise((resolve) => setTimeout(resolve, EVERY));
        job = await this.server.get(`jobs/${job.id}`);
        this.#say(`Evaluating … ${job.seconds.toFixed(0)} s`, true);
      }
      this.busy = false;
      this.#say(job.error ?? outcome(job.answer));
      if (job.answer) this.shown(job.answer);
    } catch (error) {
      this.busy = false;
      this.#refused(error, () => this.#spend());
    }
  }

  async #handOut() {
    try {
      this.#ask(await this.server.post("hand-outs", { thresholds: this.current() }));
    } catch (error) {
      this.#refused(error, () => this.#handOut());
    }
  }

  #ask({ id, point }) {
    const field = (name) => el("label", {}, name, el("input", { name, type: "number", step: "any", required: true }), this.problem.units[name]);
    const reason = el("input", { name: "failed", "aria-label": "reason of the failure" });
    const send = (body) => async (event) => {
      event?.preventDefault();
      try {
        const told = await this.server.post(`evaluations/${id}`, body());
        this.form = null;
        this.#say(told.failure === null ? "" : `Stored as failed: ${told.failure}`);
        if (told.answer) this.shown(told.answer);
      } catch (error) {
        this.#refused(error, send(body));
      }
    };
    const values = this.problem.variables.map((v) => `${v.name} = ${point[v.name]}${v.unit && ` ${v.unit}`}`).join(", ");
    this.form = el(
      "form",
      { id: "hand-in", "aria-label": `Outputs of evaluation ${id}` },
      el("p", {}, `Evaluation ${id}: measure ${values}, then enter what came out.`),
      ...this.problem.outputs.map(field),
      el("div", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Store")),
      el("label", {}, "it failed:", reason, el("span")),
      el("div", { class: "buttons" }, el("button", { type: "button", id: "failed", onclick: send(() => ({ failed: reason.value })) }, "Store as failed")),
    );
    const outputs = () => ({ outputs: Object.fromEntries(this.problem.outputs.map((name) => [name, Number(this.form.elements[name].value)])) });
    this.form.onsubmit = send(outputs);
    this.hand.hidden = true;
    this.#say("");
    this.form.querySelector("input").focus();
  }

  #say(words, working = false) {
    replace(byId("measure"), words ? el("p", { role: "status" }, words) : null, working ? el("progress", { "aria-label": "evaluating" }) : null, this.form);
  }

  // Say why not; without the token, ask for it and try again.
  #refused(error, again) {
    if (error.status !== 401) {
      replace(byId("measure"), el("p", { class: "worse", role: "alert" }, error.message), this.form);
      return;
    }
    const ask = tokenForm(this.server, again);
    replace(byId("measure"), ask, this.form);
    ask.querySelector("input").focus();
  }
}

// What is said of an answer when its evaluation has ended; its warnings are shown with it where it was measured.
function outcome(answer) {
  if (answer.status === "verified") return "";
  return answer.status === "measured" ? "The measured design is not verified." : answer.warnings.map((w) => w.warning).join("; ");
}

// An answer's record from the server in the page's own form.
export function fromRecord(problem, record) {
  const estimates = new Map(record.outputs.map((o) => [o.output, o]));
  const closest = problem.movable.every((c) => c.name in record.closest_limits) ? problem.movable.map((c) => record.closest_limits[c.name]) : null;
  return {
    closest: () => closest,
    status: record.status,
    thresholds: problem.movable.map((c) => record.limits[c.name]),
    point: problem.variables.map((v) => record.design[v.name]),
    mean: problem.outputs.map((name) => estimates.get(name).mean),
    std: problem.outputs.map((name) => estimates.get(name).std),
    probability: record.probability_feasible,
    success: record.probability_success,
    approximate: record.approximate,
    warnings: record.warnings.map((w) => w.warning),
  };
}
