// What limits cost: the best objective as one limit moves, and over two of them.

import { byId, el, replace, svg, table } from "./dom.js";
import { percent, rounded, text, withUnit } from "./numbers.js";
import { axes, band, dots, line, padded } from "./plot.js";
import { Pieces, coarseFirst } from "./work.js";

const CURVE = 33;
const CELLS = 25;
const BATCH = 4; // answers at a time: the surrogates are quickest with a few together
const SOON = 1; // milliseconds: the answer is painted first
const REST = 150; // milliseconds without movement before the map is made anew

export class TradeoffPanel {
  constructor(state) {
    this.state = state;
    const names = state.problem.movable.map((c) => c.name);
    for (const [id, view] of [["curve-limit", "curve"], ["map-first", "first"], ["map-second", "second"]]) {
      const select = byId(id);
      const moving = view === "curve" ? el("option", { value: "" }, "the one that moves") : null;
      replace(select, moving, ...names.map((name, i) => el("option", { value: i }, name)));
      select.onchange = () => this.#look(view, select.value === "" ? null : Number(select.value));
    }
    byId("map").onclick = (event) => this.#click(event);
    byId("map-section").hidden = names.length < 2;
    this.curve = null;
    this.cells = null;
  }

  // answers: the Answers; answer: the present one.
  update(answers, answer) {
    this.answers = answers;
    this.answer = answer;
    const { views, thresholds } = this.state;
    byId("curve-limit").value = views.curve ?? "";
    const { first, second } = this.#two();
    byId("map-first").value = first;
    byId("map-second").value = second;
    const along = this.state.curve;
    if (this.curve?.key !== this.#key([along])) this.#startCurve(thresholds, along);
    else this.#moveCurveMark();
    this.curve.work.go(SOON);
    if (this.state.problem.movable.length < 2) return;
    if (this.cells?.key !== this.#key([first, second])) this.#startMap(thresholds, first, second);
    else this.#moveMark();
    this.cells.work.go(REST);
  }

  // The two limits of the map: chosen ones, else the first two.
  #two() {
    const { first, second } = this.state.views;
    const free = [0, 1].filter((i) => i !== first && i !== second);
    return { first: first ?? free.shift(), second: second ?? free.shift() };
  }

  // The answers aim at another probability: what was computed is of no use.
  forget() {
    this.pause();
    this.curve = this.cells = null;
  }

  // Limits move: leave the time to them.
  pause() {
    this.curve?.work.stop();
    this.cells?.work.stop();
  }

  // Draw again after the window or the colours have changed.
  redraw() {
    if (this.curve) this.#drawCurve();
    if (this.cells) this.#drawMap();
  }

  // What a picture depends on: all limits but those that move in it, and the model.
  #key(moving) {
    const held = this.state.thresholds.map((t, i) => (moving.includes(i) ? "*" : t));
    return JSON.stringify([moving, held, this.answers.revision, this.state.probability]);
  }

  #look(view, index) {
    const { views } = this.state;
    const other = { first: "second", second: "first" }[view];
    if (other) Object.assign(views, this.#two());
    if (other && views[other] === index) views[other] = views[view];
    this.state.look(view, index);
  }

  #startCurve(thresholds, index) {
    const { strictest, relaxed } = this.state.problem.movable[index];
    const limits = Array.from({ length: CURVE }, (_, i) => strictest + (i / (CURVE - 1)) * (relaxed - strictest));
    const curve = { key: this.#key([index]), index, limits, found: Array(CURVE).fill(null) };
    const order = coarseFirst(CURVE);
    const piece = () => {
      const next = order.splice(0, BATCH);
      const rows = next.map((i) => thresholds.with(index, limits[i]));
      this.answers.many(rows).forEach((a, i) => (curve.found[next[i]] = a));
      return order.length > 0;
    };
    curve.placed = this.answers.placed(thresholds, [index]);
    this.curve = curve;
    curve.work = new Pieces(piece, (done) => {
      this.#drawCurve();
      if (done) this.#curveNumbers();
    });
  }

  #drawCurve() {
    const { index, limits, found, placed } = this.curve;
    const { problem } = this.state;
    const constraint = problem.movable[index];
    const have = limits.map((limit, i) => ({ limit, answer: found[i] })).filter((p) => p.answer);
    const reach = have.filter((p) => p.answer.status !== "unreachable");
    const near = (reach.length ? reach : have).flatMap(({ answer }) => [answer.mean[0] - 2 * answer.std[0], answer.mean[0] + 2 * answer.std[0]]);
    const plot = axes(byId("curve"), {
      x: { label: labelled(constraint.name, constraint.unit, constraint.sign > 0 ? "≤" : "≥"), low: constraint.low, high: constraint.high },
      y: { label: labelled(`best ${problem.objective.name}`, problem.objective.unit), ...padded([...near, this.answer.mean[0]], 0.06, this.answers.visible) },
      description: this.#describe(constraint, have),
    });
    const clipped = (v) => Math.min(Math.max(plot.y(v), plot.top), plot.bottom);
    const at = (p, k) => [plot.x(p.limit), clipped(p.answer.mean[0] + k * p.answer.std[0])];
    plot.add(band(have.map((p) => at(p, 2)), have.map((p) => at(p, -2)), "band"));
    const seen = placed.map((e) => [plot.x(e.limits[0]), plot.y(e.objective)]).filter(([, y]) => y >= plot.top && y <= plot.bottom);
    plot.add(dots(seen, "dim"));
    for (const stretch of stretches(have)) {
      plot.add(line(stretch.map((p) => at(p, 0)), stretch.reachable ? "curve" : "curve not"));
    }
    this.curve.plot = { ...plot, clipped, line: svg("path", { class: "now" }), here: svg("circle", { class: "here", r: 5 }) };
    plot.add(this.curve.plot.line, this.curve.plot.here);
    this.#moveCurveMark();
    if (!byId("curve-key").childElementCount) {
      replace(byId("curve-key"), key("line", "best objective"), key("band", "± 2 deviations"), key("not", "unreachable"), key("dot", "measured designs"));
    }
  }

  #moveCurveMark() {
    if (!this.curve.plot) return;
    const { x, top, bottom, clipped, line, here } = this.curve.plot;
    const now = x(inRange(this.state.problem.movable[this.curve.index], this.state.thresholds[this.curve.index]));
    line.setAttribute("d", `M${now} ${top}V${bottom}`);
    here.setAttribute("cx", now);
    here.setAttribute("cy", clipped(this.answer.mean[0]));
  }

  #describe(constraint, have) {
    const first = have[0]?.answer.mean[0];
    const last = have.at(-1)?.answer.mean[0];
    const { objective } = this.state.problem;
    return `Best ${objective.name} from ${withUnit(first, objective.unit)} at the strictest to ${withUnit(last, objective.unit)} at the most relaxed limit of ${constraint.name}; the numbers are below.`;
  }

  #curveNumbers() {
    const { index, limits, found } = this.curve;
    const { objective, movable } = this.state.problem;
    const rows = limits.map((limit, i) => [text(limit), text(found[i].mean[0], 5), text(found[i].std[0], 2), percent(found[i].probability)]);
    const names = [labelled(movable[index].name, movable[index].unit), labelled(objective.name, objective.unit), "deviation", "feasible"];
    replace(byId("curve-numbers"), table("Trade-off", names, rows));
  }

  #startMap(thresholds, first, second) {
    const { movable } = this.state.problem;
    const limit = (i, n) => movable[i].low + ((n + 0.5) / CELLS) * (movable[i].high - movable[i].low);
    const cells = { key: this.#key([first, second]), first, second, found: Array(CELLS * CELLS).fill(null) };
    const side = coarseFirst(CELLS);
    const order = side.flatMap((a, i) => side.slice(0, i + 1).flatMap((b, j) => (i === j ? [[a, a]] : [[a, b], [b, a]])));
    const piece = () => {
      const next = order.splice(0, BATCH);
      const rows = next.map(([a, b]) => thresholds.with(first, limit(first, a)).with(second, limit(second, b)));
      this.answers.many(rows).forEach((answer, i) => (cells.found[next[i][1] * CELLS + next[i][0]] = answer));
      return order.length > 0;
    };
    cells.placed = this.answers.placed(thresholds, [first, second]);
    this.cells = cells;
    cells.work = new Pieces(piece, (done) => done && this.#drawMap());
  }

  #drawMap() {
    const { found } = this.cells;
    if (!this.cells.work.done) return;
    const good = found.filter((a) => a.status !== "unreachable");
    const range = padded((good.length ? good : found).map((a) => a.mean[0]), 0, this.answers.visible);
    const canvas = byId("map-cells");
    const plot = this.#drawMarks();
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.drawImage(painted(found, range), plot.left, plot.top, plot.right - plot.left, plot.bottom - plot.top);
    hatch(context, plot, found);
    const { objective } = this.state.problem;
    replace(
      byId("map-key"),
      el("span", {}, text(range.low), el("i", { class: "swatch ramp" }), `${text(range.high)} ${objective.unit} best ${objective.name}`),
      key("hatch", "unreachable"),
      key("dot", "measured designs"),
    );
  }

  #drawMarks() {
    const { first, second, placed } = this.cells;
    const [a, b] = [first, second].map((i) => this.state.problem.movable[i]);
    const axis = (c) => ({ label: labelled(c.name, c.unit, c.sign > 0 ? "≤" : "≥"), low: c.low, high: c.high });
    const plot = axes(byId("map"), {
      x: axis(a),
      y: axis(b),
      description: `Best ${this.state.problem.objective.name} over the limits of ${a.name} and ${b.name}; the sliders move the same limits.`,
    });
    plot.add(dots(placed.map((e) => [plot.x(e.limits[0]), plot.y(e.limits[1])]), ""));
    plot.add(dots(placed.map((e) => [plot.x(e.limits[0]), plot.y(e.limits[1])]), "ring"));
    this.plot = { ...plot, a, b, lines: svg("path", { class: "now" }), here: svg("circle", { class: "here", r: 5 }) };
    plot.add(this.plot.lines, this.plot.here);
    this.#moveMark();
    return plot;
  }

  #moveMark() {
    if (!this.plot) return;
    const { x, y, left, right, top, bottom, lines, here } = this.plot;
    const at = (i) => inRange(this.state.problem.movable[i], this.state.thresholds[i]);
    const [px, py] = [x(at(this.cells.first)), y(at(this.cells.second))];
    lines.setAttribute("d", `M${px} ${top}V${bottom}M${left} ${py}H${right}`);
    here.setAttribute("cx", px);
    here.setAttribute("cy", py);
  }

  #click(event) {
    if (!this.plot) return;
    const { left, right, top, bottom, a, b } = this.plot;
    const frame = byId("map").getBoundingClientRect();
    const share = (v, from, to) => Math.min(Math.max((v - from) / (to - from), 0), 1);
    const x = a.low + share(event.clientX - frame.left, left, right) * (a.high - a.low);
    const y = b.low + share(event.clientY - frame.top, bottom, top) * (b.high - b.low);
    const { first, second } = this.cells;
    const round = (value, c) => Math.min(Math.max(rounded(value, c.high - c.low), c.low), c.high);
    this.state.set(this.state.thresholds.with(first, round(x, a)).with(second, round(y, b)));
  }
}

export function key(kind, words) {
  return el("span", {}, el("i", { class: `swatch ${kind}` }), words);
}

export function labelled(name, unit, symbol = "") {
  return `${name}${symbol && ` ${symbol}`}${unit && ` [${unit}]`}`;
}

// A limit that lies outside its range is marked at the end of the axis.
function inRange(constraint, value) {
  return Math.min(Math.max(value, constraint.low), constraint.high);
}

// Cut a curve where it becomes reachable or ceases to be; neighbours share their end.
function stretches(points) {
  const found = [];
  points.forEach((p, i) => {
    const reachable = p.answer.status !== "unreachable";
    const last = found.at(-1);
    if (last?.reachable === reachable) last.push(p);
    else found.push(Object.assign(i ? [points[i - 1], p] : [p], { reachable }));
  });
  return found;
}

// One pixel for each cell; the browser smooths between them.
function painted(found, range) {
  const style = getComputedStyle(document.documentElement);
  const [low, high] = ["--map-low", "--map-high"].map((name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number));
  const image = new ImageData(CELLS, CELLS);
  found.forEach((answer, i) => {
    const share = Math.min(Math.max((answer.mean[0] - range.low) / (range.high - range.low || 1), 0), 1);
    const at = ((CELLS - 1 - Math.floor(i / CELLS)) * CELLS + (i % CELLS)) * 4;
    for (let c = 0; c < 3; c++) image.data[at + c] = low[c] + share * (high[c] - low[c]);
    image.data[at + 3] = answer.status === "unreachable" ? 70 : 255;
  });
  const small = el("canvas", { width: CELLS, height: CELLS });
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

function hatch(context, plot, found) {
  const [width, height] = [(plot.right - plot.left) / CELLS, (plot.bottom - plot.top) / CELLS];
  context.save();
  context.beginPath();
  found.forEach((answer, i) => {
    if (answer.status !== "unreachable") return;
    context.rect(plot.left + (i % CELLS) * width, plot.bottom - (Math.floor(i / CELLS) + 1) * height, width + 0.5, height + 0.5);
  });
  context.clip();
  context.beginPath();
  for (let c = plot.left - (plot.bottom - plot.top); c < plot.right; c += 7) {
    context.moveTo(c, plot.bottom);
    context.lineTo(c + (plot.bottom - plot.top), plot.top);
  }
  context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--hatch");
  context.stroke();
  context.restore();
}
