// The limits that are shown, how they came about, and their address.

const UNDO = 200; // changes that can be undone
const TOGETHER_WITHIN = 800; // milliseconds: key presses on one limit that follow each other so quickly are one change

export class State {
  // problem: the Problem; changed: called after every change with {settled}: whether the movement has ended.
  constructor(problem, changed) {
    this.problem = problem;
    this.changed = changed;
    this.past = [];
    this.future = [];
    this.settled = null;
    this.moved = 0; // the limit that was moved last
    this.pressed = { index: null, time: -Infinity }; // the limit that was moved last by a key, and when
    this.intents = problem.movable.map(() => "lock");
    this.#read();
    window.addEventListener("popstate", () => this.#went());
  }

  // Move one limit; settled: the user let go; byKey: one of several key presses, perhaps.
  move(index, value, settled = true, byKey = false) {
    this.moved = index;
    const now = performance.now();
    const together = byKey && this.pressed.index === index && now - this.pressed.time < TOGETHER_WITHIN;
    this.pressed = byKey ? { index, time: now } : { index: null, time: -Infinity };
    this.#take(this.thresholds.with(index, value), settled, together);
  }

  set(thresholds, settled = true) {
    this.pressed.index = null;
    this.#take(thresholds, settled, false);
  }

  // The limit along which the curve is drawn: a chosen one, or the one that was moved last.
  get curve() {
    return this.views.curve ?? this.moved;
  }

  // Choose what a plot shows: curve (null: the limit that moves), first or second, by index.
  look(what, index) {
    this.views[what] = index;
    this.#write("replace");
    this.changed({ settled: true });
  }

  // Choose the probability of feasibility to aim at; null: the study's own.
  aim(probability) {
    this.probability = probability;
    this.#write("push");
    this.changed({ settled: true });
  }

  undo() {
    this.#step(this.past, this.future);
  }

  redo() {
    this.#step(this.future, this.past);
  }

  // together: this change is one with the last one.
  #take(thresholds, settled, together) {
    this.settled ??= this.thresholds;
    this.thresholds = thresholds;
    if (settled) {
      const before = this.settled;
      this.settled = null;
      if (before.some((t, i) => t !== thresholds[i])) {
        if (!together) this.past = [...this.past.slice(-UNDO), before];
        this.future = [];
        this.#write(together ? "replace" : "push");
      }
    }
    this.changed({ settled });
  }

  #step(from, to) {
    const next = from.pop();
    if (!next) return;
    to.push(this.thresholds);
    this.thresholds = next;
    this.settled = null;
    this.#write("push");
    this.changed({ settled: true });
  }

  // The browser went back or forward, or somebody changed the address.
  #went() {
    const before = this.thresholds;
    this.#read();
    if (before.some((t, i) => t !== this.thresholds[i])) {
      this.past.push(before);
      this.future = [];
    }
    this.settled = null;
    this.changed({ settled: true });
  }

  #read() {
    const stated = new URLSearchParams(window.location.hash.slice(1));
    const { movable } = this.problem;
    this.thresholds = movable.map((c) => {
      const value = Number(stated.get(`at.${c.name}`) || NaN);
      return Number.isFinite(value) ? value : c.nominal;
    });
    const index = (key) => {
      const found = movable.findIndex((c) => c.name === stated.get(key));
      return found < 0 ? null : found;
    };
    this.views = { curve: index("curve"), first: index("first"), second: index("second") };
    const probability = Number(stated.get("probability"));
    this.probability = probability > 0 && probability < 1 ? probability : null;
  }

  // how: "push" makes an entry in the browser's history, so that Back leads to what was before; "replace" makes none.
  #write(how) {
    if (window.location.protocol === "about:") return; // A page inside another one, made of a text, has no address.
    if (how === "push") window.history.pushState(null, "", this.link());
    else window.history.replaceState(null, "", this.link());
  }

  link() {
    const { movable } = this.problem;
    const stated = new URLSearchParams(movable.map((c, i) => [`at.${c.name}`, String(this.thresholds[i])]));
    for (const [what, index] of Object.entries(this.views)) if (index !== null) stated.set(what, movable[index].name);
    if (this.probability !== null) stated.set("probability", String(this.probability));
    return `#${stated}`;
  }
}
