// The pictures of what limits cost: a curve along one of them, a map over two, and small multiples of all.

import { CurvePicture } from "./curve.js";
import { byId, el, replace } from "./dom.js";
import { MapPicture } from "./bindmap.js";
import { MultiplesPicture } from "./multiples.js";
import { byGain } from "./sweep.js";

const SOON = 1; // milliseconds: the answer is painted first
const REST_BEFORE_MAP = 100; // milliseconds without movement before the map is made anew

export class TradeoffPanel {
  // pick: called with the number of a measured design that was clicked.
  constructor(state, pick) {
    this.state = state;
    const names = state.problem.movable.map((c) => c.name);
    for (const [id, view] of [["curve-limit", "curve"], ["map-first", "first"], ["map-second", "second"]]) {
      const moving = view === "curve" ? el("option", { value: "" }, "the one that moves") : null;
      const select = byId(id);
      replace(select, moving, ...names.map((name, i) => el("option", { value: i }, name)));
      select.onchange = () => this.#look(view, select.value === "" ? null : Number(select.value));
    }
    byId("map-section").hidden = names.length < 2;
    this.curves = new CurvePicture(state, pick);
    this.maps = new MapPicture(state, pick);
    this.multiples = new MultiplesPicture(state);
    this.suggested = null; // the two limits that matter most, once they are known
  }

  get curve() {
    return this.curves.made;
  }

  get cells() {
    return this.maps.made;
  }

  // answers: the Answers; answer: the present one; insight: what is known about these limits, or null.
  update(answers, answer, insight) {
    const { views } = this.state;
    const along = this.state.curve;
    byId("curve-limit").value = views.curve ?? "";
    this.curves.update(answers, answer, along, this.#key(answers, [along]), insight);
    this.curves.made.work.go(SOON);
    this.multiples.update(answers, answer, insight);
    if (this.state.problem.movable.length < 2) return;
    if (insight?.curves) this.suggested ??= byGain(insight.curves, answers.problem.goal).slice(0, 2);
    const { first, second } = this.#two();
    if (first === null) return; // The map waits until it is known which limits matter.
    byId("map-first").value = first;
    byId("map-second").value = second;
    this.maps.update(answers, answer, first, second, this.#key(answers, [first, second]));
    this.maps.made.work.go(REST_BEFORE_MAP);
  }

  // The two limits of the map: chosen ones, else those that matter most.
  #two() {
    const { first, second } = this.state.views;
    const free = (this.suggested ?? [null, null]).filter((i) => i === null || (i !== first && i !== second));
    return first !== null && second !== null ? { first, second } : { first: first ?? free.shift(), second: second ?? free.shift() };
  }

  // Limits move: leave the time to them.
  pause() {
    this.curve?.work.stop();
    this.cells?.work.stop();
  }

  // The answers aim at another probability: what was computed is of no use.
  forget() {
    this.pause();
    this.curves.made = this.maps.made = null;
  }

  // Draw again after the window or the colours have changed.
  redraw() {
    if (this.curve) this.curves.draw();
    if (this.cells) this.maps.draw();
    this.multiples.draw();
  }

  // What a picture depends on: all limits but those that move in it, and the model.
  #key(answers, moving) {
    const held = this.state.thresholds.map((t, i) => (moving.includes(i) ? "*" : t));
    return JSON.stringify([moving, held, answers.revision, this.state.probability]);
  }

  #look(view, index) {
    const { views } = this.state;
    const other = { first: "second", second: "first" }[view];
    if (other) Object.assign(views, this.#two());
    if (other && views[other] === index) views[other] = views[view];
    this.state.look(view, index);
  }
}
