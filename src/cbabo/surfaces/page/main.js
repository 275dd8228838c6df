// The explorer: puts the parts together, for a page with a server and for a file without.

import { AnswerPanel } from "./answer.js";
import { Answers } from "./answers.js";
import { sayBasis, welcome } from "./basis.js";
import { DesignPanel } from "./design.js";
import { byId, el } from "./dom.js";
import { Embedding } from "./embedding.js";
import { offerExport } from "./export.js";
import { Explainer } from "./explain.js";
import { EvaluationsPanel } from "./evaluations.js";
import { HistoryPanel } from "./history.js";
import { ParallelPicture } from "./parallel.js";
import { PickedPanel } from "./picked.js";
import { PinBoard } from "./pins.js";
import { calibrationNumbers, showQuality } from "./quality.js";
import { MeasurePanel, fromRecord } from "./measure.js";
import { Proposer } from "./propose.js";
import { RecommendPanel } from "./recommend.js";
import { LimitRows } from "./rows.js";
import { byPrice, spoken } from "./sentences.js";
import { Server } from "./server.js";
import { offerLink } from "./sharing.js";
import { State } from "./state.js";
import { TradeoffPanel } from "./tradeoffs.js";
import { WaysPanel } from "./ways.js";

const FOLLOW = 1500; // milliseconds between two looks at the study
const PAUSE_BEFORE_ASKING = 200; // milliseconds of rest before the server's own answer is asked for
const PAUSE = 600; // milliseconds of rest before an answer is read out

class Explorer {
  constructor(stated, server) {
    this.server = server;
    this.verified = new Map(); // Answers by limits.
    this.broken = null; // The answer to the present limits that was measured and breaks one of them, with its key.
    this.status = { evaluator: false };
    this.#build(stated);
    this.load(stated);
  }

  #build(stated) {
    const problem = new Answers({ ...stated, map: undefined }).problem;
    this.state = new State(problem, (change) => this.#changed(change));
    this.embedding = new Embedding(this.state);
    this.rows = new LimitRows(this.state);
    this.panel = new AnswerPanel(this.state, stated.map?.probability ?? null);
    this.design = new DesignPanel(problem);
    this.ways = new WaysPanel(problem, (limits) => this.state.set(limits));
    this.explainer = new Explainer(this.server, () => this.#changed({ settled: true }));
    this.tradeoffs = new TradeoffPanel(this.state, (id) => this.picked.pick(id));
    this.history = new HistoryPanel((id) => this.picked.pick(id));
    this.picked = new PickedPanel(this.state);
    this.evaluations = new EvaluationsPanel(problem, stated.study.name, (id) => this.picked.pick(id), () => this.parallel.draw());
    this.parallel = new ParallelPicture(problem, this.evaluations);
    this.pins = new PinBoard(this.state, stated.study.name, (limits) => this.answers.one(limits), this.server);
    byId("pin").onclick = () => this.pins.add(this.panel.answer);
    const pinned = (limits, note) => this.pins.addAt(limits, note);
    this.recommend = new RecommendPanel(this.state, (wish) => this.#proposed(wish), Boolean(this.server), pinned);
    this.#offerExports(stated.study.name);
    welcome();
    if (this.server) {
      const current = () => Object.fromEntries(problem.movable.map((c, i) => [c.name, this.state.thresholds[i]]));
      this.measure = new MeasurePanel(problem, this.server, current, (record) => this.#remember(record));
    }
    byId("title").textContent = `${stated.study.name} – explorer`;
    document.title = `${stated.study.name} – cbabo explorer`;
    byId("link").onclick = () => offerLink(byId("link"), byId("sharing"));
    byId("theme").onclick = () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      this.tradeoffs.redraw();
    };
    document.addEventListener("keydown", (event) => this.#key(event));
    let waiting = 0;
    const sizes = new ResizeObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.answers.known && this.#redraw(), 60);
    });
    for (const id of ["curve", "map", "timeline", "scatters", "multiples", "parallel"]) sizes.observe(byId(id));
  }

  // Undo and redo, but not in a field, which has its own.
  #key(event) {
    const isField = event.target.matches?.("textarea, input:not([type=range], [type=checkbox])");
    if (!(event.ctrlKey || event.metaKey) || isField) return;
    const pressed = event.key.toLowerCase();
    const redo = pressed === "y" || (pressed === "z" && event.shiftKey);
    if (pressed !== "z" && pressed !== "y") return;
    event.preventDefault();
    if (redo) this.state.redo();
    else this.state.undo();
  }

  // Take a document, the first or a newer one.
  load(stated) {
    this.stated = stated;
    this.answers = new Answers(stated);
    this.answers.revision = stated.revision ?? 0;
    this.exact = null;
    this.explainer.forget();
    document.querySelector("main").hidden = !this.answers.known;
    const versions = Object.entries(stated.study.versions).map(([name, version]) => `${name} ${version}`);
    byId("versions").textContent = `seed ${stated.study.seed} · ${versions.join(" · ")}`;
    if (this.answers.known) this.#redraw();
    if (this.server) return;
    byId("progress").textContent = this.#progress(this.answers.evaluations);
    showConvergence(stated.convergence);
  }

  #progress(evaluations) {
    const count = (state) => evaluations.filter((e) => e.state === state).length;
    return `${count("complete")} measured, ${count("failed")} failed`;
  }

  #redraw() {
    this.#changed({ settled: true });
    this.tradeoffs.redraw();
    showQuality(this.answers.problem, this.stated.quality, this.stated.audit);
  }

  // Several movements within a frame are one picture.
  #changed({ settled }) {
    this.rows.update();
    this.tradeoffs.pause();
    this.explainer.moved(this.#keyOf(this.state.thresholds));
    this.settled ||= settled;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#draw(this.settled);
      this.settled = false;
    });
  }

  #draw(settled) {
    if (!this.answers.known) return;
    const { thresholds, probability } = this.state;
    const key = this.#keyOf(thresholds);
    const own = probability === null || probability === this.answers.aim;
    if (this.answers.aimAt(probability)) this.tradeoffs.forget();
    if (this.broken?.key !== key) this.broken = null; // Back here, the newer model's prediction is shown.
    const known = own ? (this.verified.get(key) ?? this.broken?.answer) : null;
    const answer = known ?? this.#exactAt(key)?.answer ?? this.answers.one(thresholds);
    if (settled) {
      this.#ask(key, thresholds);
      this.embedding.tell();
      this.explainer.rest(this.answers, answer, key, own);
    }
    const insight = this.explainer.at(key);
    const standings = this.answers.standings(answer);
    this.panel.update(answer, this.#deciding(standings, insight), insight?.conflict ? this.#names(insight.conflict.limits) : null);
    this.rows.predict(standings, answer, insight);
    this.design.update(answer, this.answers.nearest(answer.point));
    this.ways.update(answer, insight);
    this.tradeoffs.update(this.answers, answer, insight);
    this.recommend.update();
    this.measure?.update(this.status, answer, own);
    if (settled) this.#update(answer);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => (byId("spoken").textContent = spoken(this.answers.problem, answer, standings)), PAUSE);
  }

  // What follows when the limits rest.
  #update(answer) {
    const { answers, status } = this;
    this.history.update(answers, answer.thresholds);
    this.evaluations.update(answers, answer.thresholds);
    this.parallel.update(answers, answer);
    this.picked.update(answers);
    sayBasis(answers.measured, status.complete ?? answers.measured.length, status.learning);
  }

  #offerExports(name) {
    const { curves, maps, multiples } = this.tradeoffs;
    offerExport(byId("curve-tools"), `${name} trade-off`, () => byId("curve"), () => curves.numbers());
    offerExport(byId("map-tools"), `${name} map`, () => byId("map"), () => maps.numbers());
    offerExport(byId("multiples-tools"), `${name} trade-offs`, null, () => multiples.numbers());
    offerExport(byId("timeline-tools"), `${name} evaluations in order`, () => byId("timeline"), () => this.history.numbers());
    offerExport(byId("quality-tools"), `${name} calibration`, () => byId("calibration"), () => calibrationNumbers(this.stated.quality));
  }

  // What an answer depends on: limits, the probability aimed at, and the model.
  #keyOf(thresholds) {
    const { probability } = this.state;
    return probability === null ? String(thresholds) : `${thresholds}@${probability}`;
  }

  #names(indices) {
    return indices.map((i) => this.answers.problem.movable[i].name);
  }

  // The limits that bind: those that cost something, the dearest first, or, before prices are known, those whose output is close to them.
  #deciding(standings, insight) {
    if (insight?.prices.some((price) => price)) return this.#names(byPrice(this.answers.problem, insight.prices));
    return [...new Set(standings.filter((s) => s.standing === "active").map((s) => s.constraint.name))];
  }

  #exactAt(key) {
    return this.exact?.key === key ? this.exact : null;
  }

  // Where a solver stands behind the map, take its own answer as soon as the limits rest: it is the one that is verified.
  #ask(key, thresholds) {
    clearTimeout(this.asking);
    if (!this.server || this.answers.map.network || this.exact?.key === key) return;
    const { probability } = this.state;
    this.asking = setTimeout(async () => {
      const { problem } = this.answers;
      const limits = Object.fromEntries(problem.movable.map((c, i) => [c.name, thresholds[i]]));
      const record = await this.server.post("predict", { thresholds: limits, ...(probability && { probability }) }).catch(() => null); // then the map's stays
      if (record === null || this.#keyOf(this.state.thresholds) !== key) return;
      this.exact = { key, answer: fromRecord(problem, record) };
      this.#changed({ settled: true });
    }, PAUSE_BEFORE_ASKING);
  }

  // A recommendation: the server's, or found here.
  #proposed(wish) {
    if (this.server) return this.server.post("recommend", wish);
    return new Proposer(this.answers, this.stated.recommend).propose(wish.thresholds, wish.intents);
  }

  // Show what was measured: a verified answer whenever its limits are set, one that breaks a limit until the limits move.
  #remember(record) {
    const answer = fromRecord(this.answers.problem, record);
    const key = String(answer.thresholds);
    if (answer.status === "verified") this.verified.set(key, answer);
    else if (answer.status === "measured") this.broken = { key, answer };
    this.#changed({ settled: true });
  }

  // Look at the study again and again; fetch what is new.
  async follow() {
    for (;;) {
      try {
        const status = await this.server.get("follow");
        notice(status.problem ?? "");
        this.status = status;
        const live = status.optimiser === "none" ? "" : ` · running: ${status.optimiser}`;
        byId("progress").textContent =
          `${status.complete} measured, ${status.failed} failed, ${status.running} pending${live}${status.learning ? " · learning" : ""}`;
        showConvergence(status.convergence);
        for (const record of status.verified) {
          const answer = fromRecord(this.answers.problem, record);
          if (!this.verified.has(String(answer.thresholds))) this.#remember(record);
        }
        if (status.revision !== this.stated.revision) this.load(await this.server.get("document"));
        else if (this.answers.known) sayBasis(this.answers.measured, status.complete, status.learning);
        if (status.revision === this.stated.revision) this.measure.update(status, this.panel.answer ?? { status: "predicted" }, this.measure.own);
      } catch (error) {
        notice(error.message);
      }
      await new Promise((resolve) => setTimeout(resolve, FOLLOW));
    }
  }
}

// How far the answers still move, where it was estimated since the last evaluation.
function showConvergence(words) {
  const place = byId("convergence");
  place.hidden = !words;
  place.textContent = words ? `Convergence: ${words}.` : "";
}

function notice(words) {
  const place = byId("notice");
  place.hidden = !words;
  if (place.textContent !== words) place.textContent = words;
}

async function start() {
  const embedded = byId("document");
  if (embedded) {
    window.explorer = new Explorer(JSON.parse(embedded.textContent), null);
    return;
  }
  const server = new Server();
  try {
    window.explorer = new Explorer(await server.get("document"), server);
    window.explorer.follow();
  } catch (error) {
    notice(error.message);
    document.body.append(el("p", { class: "note" }, "Load the page again to retry."));
  }
}

start();
