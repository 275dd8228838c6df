// The explorer: puts the parts together, for a page with a server and for a file without.

import { AnswerPanel, copied, spoken } from "./answer.js";
import { Answers } from "./answers.js";
import { byId, el } from "./dom.js";
import { Embedding } from "./embedding.js";
import { HistoryPanel, showQuality } from "./history.js";
import { LimitsPanel } from "./limits.js";
import { MeasurePanel, fromRecord } from "./measure.js";
import { Proposer } from "./propose.js";
import { RecommendPanel } from "./recommend.js";
import { Server } from "./server.js";
import { State } from "./state.js";
import { TradeoffPanel } from "./tradeoffs.js";

const FOLLOW = 1500; // milliseconds between two looks at the study
const PAUSE_BEFORE_ASKING = 200; // milliseconds of rest before the server's own answer is asked for
const PAUSE = 600; // milliseconds of rest before an answer is read out

class Explorer {
  constructor(stated, server) {
    this.server = server;
    this.verified = new Map(); // Answers by limits.
    this.broken = null; // The answer to the present limits that was measured and breaks one of them, with its key.
    this.status = { evaluator: false };
    this.history = new HistoryPanel();
    this.#build(stated);
    this.load(stated);
  }

  #build(stated) {
    const problem = new Answers({ ...stated, map: undefined }).problem;
    this.state = new State(problem, (change) => this.#changed(change));
    this.embedding = new Embedding(this.state);
    this.limits = new LimitsPanel(this.state);
    this.panel = new AnswerPanel(problem, (limits) => this.state.set(limits));
    this.tradeoffs = new TradeoffPanel(this.state);
    this.recommend = new RecommendPanel(this.state, (wish) => this.#proposed(wish), Boolean(this.server));
    if (this.server) {
      const current = () => Object.fromEntries(problem.movable.map((c, i) => [c.name, this.state.thresholds[i]]));
      this.measure = new MeasurePanel(problem, this.server, current, (record) => this.#remember(record));
    }
    byId("title").textContent = `${stated.study.name} – explorer`;
    document.title = `${stated.study.name} – cbabo explorer`;
    byId("link").onclick = () => copied(byId("link"), window.location.href);
    byId("theme").onclick = () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      this.tradeoffs.redraw();
    };
    document.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "z" || event.target.type === "number") return;
      event.preventDefault();
      this.state.undo();
    });
    let waiting = 0;
    const sizes = new ResizeObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.answers.known && this.#redraw(), 60);
    });
    for (const id of ["curve", "map-frame", "timeline", "scatters"]) sizes.observe(byId(id));
  }

  // Take a document, the first or a newer one.
  load(stated) {
    this.stated = stated;
    this.answers = new Answers(stated);
    this.answers.revision = stated.revision ?? 0;
    this.exact = null;
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
    showQuality(this.answers.problem, this.stated.quality);
  }

  // Several movements within a frame are one picture.
  #changed({ settled }) {
    this.limits.update();
    this.tradeoffs.pause();
    this.settled ||= settled;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#draw(this.settled);
      this.settled = false;
    });
  }

  #draw(settled) {
    if (!this.answers.known) return;
    const { thresholds } = this.state;
    const key = String(thresholds);
    if (this.broken?.key !== key) this.broken = null; // Back here, the newer model's prediction is shown.
    const answer = this.verified.get(key) ?? (this.broken ?? this.#exactAt(key))?.answer ?? this.answers.one(thresholds);
    answer.closest ??= () => this.answers.closest(thresholds);
    if (settled) {
      this.#ask(key, thresholds);
      this.embedding.tell();
    }
    const standings = this.answers.standings(answer);
    this.panel.update(answer, standings, this.answers.nearest(answer.point), settled);
    this.tradeoffs.update(this.answers, answer);
    this.recommend.update();
    this.measure?.update(this.status, answer);
    if (settled) this.history.update(this.answers, thresholds);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => (byId("spoken").textContent = spoken(this.answers.problem, answer, standings)), PAUSE);
  }

  #exactAt(key) {
    return this.exact?.key === key ? this.exact : null;
  }

  // Where a solver stands behind the map, take its own answer as soon as the limits rest: it is the one that is verified.
  #ask(key, thresholds) {
    clearTimeout(this.asking);
    if (!this.server || this.answers.map.network || this.exact?.key === key) return;
    this.asking = setTimeout(async () => {
      const { problem } = this.answers;
      const limits = Object.fromEntries(problem.movable.map((c, i) => [c.name, thresholds[i]]));
      const record = await this.server.post("predict", { thresholds: limits }).catch(() => null); // then the map's stays
      if (record === null || String(this.state.thresholds) !== key) return;
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
        else this.measure.update(status, this.panel.answer ?? { status: "predicted" });
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
