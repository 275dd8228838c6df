// A link to what is shown, and what to do where the link leads nowhere for others.

import { copied } from "./answer.js";
import { el, replace } from "./dom.js";

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;

// Copy the link; where it leads to this machine only, say so and offer what others can use.
export function offerLink(button, place) {
  const { href, protocol, hostname, hash } = window.location;
  copied(button, href);
  const here = { "file:": FILE, "about:": INSIDE }[protocol] ?? (LOOPBACK.test(hostname) ? SERVER : null);
  place.hidden = here === null;
  if (here === null) return;
  const part = el("button", { type: "button", id: "copy-part" }, "Copy the part with the limits");
  part.onclick = () => copied(part, hash);
  const close = el("button", { type: "button", onclick: () => (place.hidden = true) }, "Close");
  replace(place, el("span", {}, here), part, close);
}

const FILE =
  "The link was copied, but it leads to a file on this machine. To show others these limits, send them the file and the part of the link from # on: they put it behind the file’s address.";
const INSIDE = "This page stands inside another one and has no address of its own.";
const SERVER =
  "The link was copied, but this address answers on this machine only. Others reach it through a tunnel (ssh -L), with the same link; or put the part from # on behind the address of their own explorer of this study.";
