// What lies under the pointer in a plot: its values are shown beside it, and a click goes there or picks a measured design.

import { el, svg } from "./dom.js";

export class Pointer {
  // root: the <svg>; under(px, py): {words, px, py, go, id} or null; pick: takes the number of a measured design; go: takes limits.
  constructor(root, under, pick, go) {
    Object.assign(this, { root, under, pick, go, mark: null });
    this.tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    root.after(this.tip);
    root.addEventListener("pointermove", (event) => this.#show(event));
    root.addEventListener("pointerleave", () => this.#hide());
    root.addEventListener("click", (event) => this.#click(event));
  }

  #at(event) {
    const frame = this.root.getBoundingClientRect();
    return this.under(event.clientX - frame.left, event.clientY - frame.top);
  }

  #show(event) {
    const found = this.#at(event);
    this.root.classList.toggle("pickable", found?.id !== undefined);
    if (!found) return this.#hide();
    if (!this.mark?.isConnected) this.root.append((this.mark = svg("circle", { class: "under", r: 4 })));
    this.mark.setAttribute("cx", found.px);
    this.mark.setAttribute("cy", found.py);
    this.mark.setAttribute("visibility", "visible");
    this.tip.textContent = found.words;
    this.tip.hidden = false;
    const frame = this.root.getBoundingClientRect();
    const x = Math.min(frame.left + found.px + 10, window.innerWidth - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(4, x)}px`;
    this.tip.style.top = `${frame.top + found.py + 12}px`;
  }

  #hide() {
    this.tip.hidden = true;
    this.mark?.setAttribute("visibility", "hidden");
  }

  #click(event) {
    const found = this.#at(event);
    if (found?.id !== undefined) this.pick(found.id);
    else if (found?.go) this.go(found.go);
  }
}
