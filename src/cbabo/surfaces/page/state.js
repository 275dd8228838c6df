// The limits that are shown, how they came about, and their address.

const UNDO = 200;

export class State {
  // problem: the Problem; changed: called after every change with {settled}: whether the movement has ended.
  constructor(problem, changed) {
    this.problem = problem;
    this.changed = changed;
    this.past = [];
    this.settled = null;
    this.moved = 0; // the limit that was moved last
    this.#read();
    window.addEventListener("hashchange", () => {
      this.#read();
      this.changed({ settled: true });
    });
  }

  // Move one limit; settled: the user let go.
  move(index, value, settled = true) {
    this.moved = index;
    this.set(this.thresholds.map((t, i) => (i === index ? value : t)), settled);
  }

  set(thresholds, settled = true) {
    if (this.settled === null) this.settled = this.thresholds;
    this.thresholds = thresholds;
    if (settled) {
      this.#remember();
      this.#write();
    }
    this.changed({ settled });
  }

  // The limit along which the curve is drawn: a chosen one, or the one that was moved last.
  get curve() {
    return this.views.curve ?? this.moved;
  }

  // Choose what a plot shows: curve (null: the limit that moves), first or second, by index.
  look(what, index) {
    this.views[what] = index;
    this.#write();
    this.changed({ settled: true });
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.thresholds = before;
    this.settled = null;
    this.#write();
    this.changed({ settled: true });
  }

  // Put what was shown before the present movement on the pile.
  #remember() {
    const before = this.settled ?? this.thresholds;
    this.settled = null;
    if (before.every((t, i) => t === this.thresholds[i])) return;
    this.past = [...this.past.slice(-UNDO), before];
  }

  #read() {
    const stated = new URLSearchParams(window.location.hash.slice(1));
    const { movable } = this.problem;
    const before = this.thresholds;
    this.thresholds = movable.map((c) => {
      const value = Number(stated.get(`at.${c.name}`) || NaN);
      return Number.isFinite(value) ? value : c.nominal;
    });
    if (before && before.some((t, i) => t !== this.thresholds[i])) this.past.push(before);
    const index = (key, otherwise) => {
      const found = movable.findIndex((c) => c.name === stated.get(key));
      return found < 0 ? otherwise : found;
    };
    this.views = { curve: index("curve", null), first: index("first", 0), second: index("second", Math.min(1, movable.length - 1)) };
  }

  #write() {
    if (window.location.protocol === "about:") return; // A page inside another one, made of a text, has no address.
    window.history.replaceState(null, "", this.link());
  }

  link() {
    const { movable } = this.problem;
    const stated = new URLSearchParams(movable.map((c, i) => [`at.${c.name}`, String(this.thresholds[i])]));
    for (const [what, index] of Object.entries(this.views)) if (index !== null) stated.set(what, movable[index].name);
    return `#${stated}`;
  }
}
