// Words that the page explains where they stand: a click, Enter or hovering shows what they mean.

import { byId, el } from "./dom.js";

const MEANINGS = {
  predicted: "Predicted: computed by the model from all evaluations; nobody has run this design. ± is one standard deviation of the prediction.",
  measured: "Measured: the simulator was run for this design, and these are its outputs.",
  verified: "Verified: this design was measured, and what was measured supports the stated probability that it obeys the limits.",
  probability: "Probability: how sure the model is that this design obeys all limits together, measured without noise. The design is chosen to reach at least the probability aimed at; a higher aim keeps more distance from the limits.",
  price: "What the best objective gains if this limit alone is relaxed by the stated step, the others held. The small print of a cell says where that holds. The hatched part of a track cannot be reached while the other limits stay.",
  approximate: "Approximate: interpolated from solved neighbours, as while a slider moves. With a server the solver’s own answer replaces it when the limits rest.",
};

// A word that explains itself.
export function term(words, name) {
  const button = el("button", { type: "button", class: "term", title: MEANINGS[name] }, words);
  button.onclick = () => {
    const help = byId("help");
    help.textContent = MEANINGS[name];
    help.showPopover();
    const { left, bottom } = button.getBoundingClientRect();
    const most = window.innerWidth - help.offsetWidth - 8;
    help.style.left = `${Math.max(8, Math.min(left, most))}px`;
    help.style.top = `${bottom + 4}px`;
  };
  return button;
}
