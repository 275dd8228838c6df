// The page inside another page, as in a notebook: it says which limits are set, and takes limits that are set there.
//
// To the parent: {cbabo: "limits", thresholds: {name: value}, probability} at the start and whenever limits rest.
// From the parent: {cbabo: "set", thresholds: {name: value}}; limits that it leaves out, or that are no numbers, stay.

export class Embedding {
  constructor(state) {
    this.state = state;
    this.told = "";
    if (!this.#within) return;
    window.addEventListener("message", (event) => {
      if (event.source === window.parent && event.data?.cbabo === "set") this.#set(event.data.thresholds ?? {});
    });
  }

  get #within() {
    return window.parent !== window;
  }

  // Say which limits are set, unless that was said last; a page by itself has nobody to tell.
  tell() {
    if (!this.#within) return;
    const { problem, thresholds, probability = null } = this.state;
    const named = Object.fromEntries(problem.movable.map((c, i) => [c.name, thresholds[i]]));
    const told = JSON.stringify([named, probability]);
    if (told === this.told) return;
    this.told = told;
    window.parent.postMessage({ cbabo: "limits", thresholds: named, probability }, "*");
  }

  #set(stated) {
    const { problem, thresholds } = this.state;
    const wanted = problem.movable.map((c, i) => (Number.isFinite(stated[c.name]) ? stated[c.name] : thresholds[i]));
    if (wanted.some((value, i) => value !== thresholds[i])) this.state.set(wanted);
  }
}
