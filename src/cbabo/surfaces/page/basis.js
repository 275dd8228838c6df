// What the answers rest on: how many evaluations, and when the last of them was made; and a line for who is here for the first time.

import { byId, el, replace, say } from "./dom.js";

const SEEN = "cbabo-welcome";

// measured: the evaluations that the model knows; complete: how many there are by now; learning: whether a newer model is being made.
export function sayBasis(measured, complete, learning) {
  const times = measured.map((e) => e.started).filter((t) => t !== null);
  const last = times.length ? `, the last of ${new Date(1000 * Math.max(...times)).toISOString().slice(0, 16).replace("T", " ")} UTC` : "";
  const newer = complete - measured.length;
  const rest = newer > 0 ? `; ${newer} newer ${newer === 1 ? "one is" : "ones are"} not in it yet${learning ? ", a newer model is being made" : ""}` : "";
  say(byId("basis"), `Rests on ${measured.length} measured designs${last}${rest}.`);
}

// Say once how the page is used.
export function welcome() {
  const place = byId("welcome");
  try {
    if (localStorage.getItem(SEEN)) return;
  } catch {
    return; // There is no storage inside some other pages, where the line would come again and again.
  }
  const close = el("button", { type: "button", onclick: () => { localStorage.setItem(SEEN, "1"); place.hidden = true; } }, "Got it");
  replace(place, el("span", {}, "Move a limit, by its slider or its field: the design, its prediction and the price of each limit follow. Words with dots under them explain themselves."), close);
  place.hidden = false;
}
