// The best objective over two limits, the others held: coloured by the limits that bind, with labelled lines of equal objective.

import { contour, levels } from "./contours.js";
import { byId, el, replace, svg } from "./dom.js";
import { Pointer } from "./hover.js";
import { certain, percent, rounded, short, spread } from "./numbers.js";
import { axes, dots, key, labelled } from "./plot.js";
import { few, listed } from "./sentences.js";
import { Pieces } from "./work.js";

const CELLS = 25;
const COARSE = 4; // every so many cells are answered first; the first picture shows these
const MAP_BATCH = 4;
const COLOURS = 8; // sets of binding limits with a colour of their own; the rest share one

export class MapPicture {
  constructor(state, pick) {
    this.state = state;
    this.made = null;
    this.pointer = new Pointer(byId("map"), (px, py) => this.#under(px, py), pick, (limits) => state.set(limits));
  }

  // first, second: the limits that move, by index; mapKey: what the map depends on.
  update(answers, answer, first, second, mapKey) {
    Object.assign(this, { answers, answer });
    if (this.made?.key !== mapKey) this.#start(first, second, mapKey);
    else this.#moveMark();
  }

  // Say whether the picture belongs to other limits than are set.
  #old(isOld) {
    const frame = byId("map-frame");
    frame.classList.toggle("stale", isOld);
    frame.setAttribute("aria-busy", String(isOld));
    byId("map-busy").hidden = !isOld;
  }

  #start(first, second, mapKey) {
    const { movable } = this.state.problem;
    const { thresholds } = this.state;
    const limit = (i, n) => movable[i].low + ((n + 0.5) / CELLS) * (movable[i].high - movable[i].low);
    const made = { key: mapKey, first, second, found: Array(CELLS * CELLS).fill(null), placed: this.answers.placed(thresholds, [first, second]), drawn: false };
    const order = cellsCoarseFirst();
    const coarse = order.filter(([a, b]) => a % COARSE === 0 && b % COARSE === 0).length;
    let done = 0;
    const piece = () => {
      const next = order.slice(done, done + MAP_BATCH);
      done += next.length;
      const rows = next.map(([a, b]) => thresholds.with(first, limit(first, a)).with(second, limit(second, b)));
      this.answers.many(rows).forEach((answer, i) => (made.found[next[i][1] * CELLS + next[i][0]] = answer));
      return done < order.length;
    };
    this.made = made;
    this.#old(true);
    made.work = new Pieces(piece, (isDone) => {
      if (!isDone && (made.drawn || done < coarse)) return;
      made.drawn = true;
      this.draw();
      this.#old(false);
    });
  }

  // The answer of a cell, or, while it is not known, that of the nearest coarse one.
  #cell(a, b) {
    const { found } = this.made;
    const near = (n) => Math.min(Math.round(n / COARSE) * COARSE, CELLS - 1);
    return found[b * CELLS + a] ?? found[near(b) * CELLS + near(a)];
  }

  draw() {
    if (!this.made.drawn) return;
    const { first, second, placed } = this.made;
    const { problem } = this.state;
    const [a, b] = [first, second].map((i) => problem.movable[i]);
    const axis = (c) => ({ label: labelled(c.name, c.unit, c.sign > 0 ? "≤" : "≥"), low: c.low, high: c.high });
    const plot = axes(byId("map"), { x: axis(a), y: axis(b), description: `Which limits bind over the limits of ${a.name} and ${b.name}, and the best ${problem.objective.name}.` });
    this.plot = { ...plot, a, b };
    const sets = this.#sets();
    this.#drawCells(sets);
    this.#drawContours();
    const seen = placed.map((e) => ({ id: e.id, px: plot.x(e.limits[0]), py: plot.y(e.limits[1]) }));
    plot.add(dots(seen.map(({ px, py }) => [px, py]), ""), dots(seen.map(({ px, py }) => [px, py]), "ring"));
    Object.assign(this.plot, { seen, lines: svg("path", { class: "now" }), here: svg("circle", { class: "here", r: 5 }) });
    plot.add(this.plot.lines, this.plot.here);
    this.#moveMark();
    const named = [...sets.keys()].filter((words) => words !== "");
    const everywhere = this.made.common.length ? [el("span", {}, `bind everywhere: ${listed(this.made.common)}`)] : [];
    replace(byId("map-key"), ...everywhere, ...named.map((words) => key(`bind${sets.get(words)}`, words)), key("hatch", "cannot be met"), key("dot", "measured designs"),
      el("span", {}, `lines: best ${labelled(problem.objective.name, problem.objective.unit)}`));
  }

  // The names of the limits that are active at a cell; null where it cannot be met.
  #active(answer) {
    if (answer.status === "unreachable") return null;
    return [...new Set(this.answers.standings(answer).filter((s) => s.standing !== "slack").map((s) => s.constraint.name))];
  }

  // For each set of binding limits its colour, the most frequent sets first; limits that bind wherever limits can be met are left out.
  #sets() {
    const active = Array.from({ length: CELLS * CELLS }, (_, i) => this.#active(this.#cell(i % CELLS, Math.floor(i / CELLS))));
    const met = active.filter((names) => names !== null);
    this.made.common = met.length ? met[0].filter((name) => met.every((names) => names.includes(name))) : [];
    this.made.binding = active.map((names) => (names === null ? "" : this.#words(names.filter((name) => !this.made.common.includes(name)))));
    const counts = new Map();
    for (const words of this.made.binding) counts.set(words, (counts.get(words) ?? 0) + 1);
    const order = [...counts].sort((p, q) => q[1] - p[1]).map(([words]) => words).filter((words) => words !== "");
    const colours = new Map(order.slice(0, COLOURS).map((words, i) => [words, i]));
    if (order.length > COLOURS) {
      this.made.binding = this.made.binding.map((words) => (words === "" || colours.has(words) ? words : "other limits"));
      colours.set("other limits", COLOURS);
    }
    return new Map([...colours, ["", null]]);
  }

  #words(names) {
    return names.length ? few(names) : this.made.common.length ? "no other binds" : "none binds";
  }

  // One path for each colour, of runs of cells.
  #drawCells(sets) {
    const { plot } = this;
    const [w, h] = [(plot.right - plot.left) / CELLS, (plot.bottom - plot.top) / CELLS];
    const paths = new Map([...sets.keys()].map((words) => [words, []]));
    for (let r = 0; r < CELLS; r++) {
      for (let from = 0; from < CELLS; ) {
        const words = this.made.binding[r * CELLS + from];
        let to = from + 1;
        while (to < CELLS && this.made.binding[r * CELLS + to] === words) to++;
        const [x, y] = [plot.left + from * w, plot.bottom - (r + 1) * h];
        paths.get(words).push(`M${x.toFixed(1)} ${y.toFixed(1)}h${((to - from) * w).toFixed(1)}v${(h + 0.3).toFixed(1)}h${(-(to - from) * w).toFixed(1)}Z`);
        from = to;
      }
    }
    for (const [words, parts] of paths) {
      if (words !== "") plot.add(svg("path", { class: `cell bind${sets.get(words)}`, d: parts.join("") }));
      else if (parts.length) this.#hatch(w, h);
    }
  }

  #hatch(w, h) {
    const { plot } = this;
    const marks = [];
    this.made.binding.forEach((words, i) => {
      const [x, y] = [plot.left + (i % CELLS) * w, plot.bottom - Math.floor(i / CELLS) * h];
      if (words === "") marks.push(`M${x.toFixed(1)} ${y.toFixed(1)}l${w.toFixed(1)} ${(-h).toFixed(1)}`);
    });
    plot.add(svg("path", { class: "hatching", d: marks.join("") }));
  }

  #drawContours() {
    const { plot } = this;
    const values = Array.from({ length: CELLS }, (_, r) => Array.from({ length: CELLS }, (_, c) => {
      const answer = this.#cell(c, r);
      return answer.status === "unreachable" ? null : answer.mean[0];
    }));
    const known = values.flat().filter((v) => v !== null);
    if (!known.length || Math.max(...known) - Math.min(...known) < this.answers.visible) return;
    const at = ([c, r]) => [plot.left + ((c + 0.5) / CELLS) * (plot.right - plot.left), plot.bottom - ((r + 0.5) / CELLS) * (plot.bottom - plot.top)];
    for (const level of levels(Math.min(...known), Math.max(...known))) {
      const lines = contour(values, level);
      plot.add(svg("path", { class: "contour", d: lines.map((points) => points.map((p, i) => `${i ? "L" : "M"}${at(p).map((v) => v.toFixed(1)).join(" ")}`).join("")).join("") }));
      const longest = lines.reduce((best, points) => (points.length > best.length ? points : best), []);
      if (longest.length < 4) continue;
      const [x, y] = at(longest[Math.floor(longest.length / 2)]);
      plot.add(svg("text", { class: "contour-label", x, y: y + 4, "text-anchor": "middle" }, short(level)));
    }
  }

  #moveMark() {
    if (!this.plot?.here) return;
    const { x, y, left, right, top, bottom, lines, here } = this.plot;
    const at = (i) => {
      const { low, high } = this.state.problem.movable[i];
      return Math.min(Math.max(this.state.thresholds[i], low), high);
    };
    const [px, py] = [x(at(this.made.first)), y(at(this.made.second))];
    lines.setAttribute("d", `M${px} ${top}V${bottom}M${left} ${py}H${right}`);
    here.setAttribute("cx", px);
    here.setAttribute("cy", py);
  }

  #under(px, py) {
    if (!this.plot?.seen) return null;
    const { left, right, top, bottom, a, b, seen } = this.plot;
    const dot = seen.find((e) => Math.hypot(e.px - px, e.py - py) < 6);
    if (dot) return { words: `evaluation ${dot.id}, measured`, px: dot.px, py: dot.py, id: dot.id };
    const [u, v] = [(px - left) / (right - left), (bottom - py) / (bottom - top)];
    if (u < 0 || u > 1 || v < 0 || v > 1) return null;
    const place = (c, share) => Math.min(Math.max(rounded(c.low + share * (c.high - c.low), c.high - c.low), c.low), c.high);
    const [s, t] = [place(a, u), place(b, v)];
    const go = this.state.thresholds.with(this.made.first, s).with(this.made.second, t);
    const cell = [u, v].map((share) => Math.min(Math.floor(share * CELLS), CELLS - 1));
    const answer = this.#cell(...cell);
    const where = `${a.name} ${short(s)}, ${b.name} ${short(t)}`;
    if (answer.status === "unreachable") return { words: `${where}: cannot be met`, px, py, go };
    const { objective } = this.state.problem;
    const words = `${where}: ${objective.name} ${certain(answer.mean[0], answer.std[0])}${spread(answer.mean[0], answer.std[0])} ${objective.unit}, ${percent(answer.probability)}; binds: ${this.made.binding[cell[1] * CELLS + cell[0]]}`;
    return { words, px, py, go };
  }

  // The numbers behind the map, for export.
  numbers() {
    const { movable, objective } = this.state.problem;
    const { first, second, found, binding } = this.made;
    const at = (c, n) => c.low + ((n + 0.5) / CELLS) * (c.high - c.low);
    const rows = found.flatMap((answer, i) => (answer === null ? [] : [[at(movable[first], i % CELLS), at(movable[second], Math.floor(i / CELLS)), answer.status === "unreachable" ? null : answer.mean[0], binding[i] || "cannot be met"]]));
    return { names: [movable[first].name, movable[second].name, labelled(objective.name, objective.unit), "binds"], rows };
  }
}

// All cells, a coarse grid first.
function cellsCoarseFirst() {
  const all = Array.from({ length: CELLS * CELLS }, (_, i) => [i % CELLS, Math.floor(i / CELLS)]);
  const isCoarse = ([a, b]) => a % COARSE === 0 && b % COARSE === 0;
  return [...all.filter(isCoarse), ...all.filter((cell) => !isCoarse(cell))];
}
