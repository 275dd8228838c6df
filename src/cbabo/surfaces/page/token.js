// Asking for the token that cbabo serve printed, where the server wants it and this tab has none.

import { el } from "./dom.js";

// A form that takes the token and then tries again.
export function tokenForm(server, again) {
  const field = el("input", { name: "token", autocomplete: "off", "aria-label": "token" });
  const form = el("form", { id: "token-form" }, el("p", {}, "This needs the token that cbabo serve printed when it started."),
    el("label", {}, "token", field, el("span")), el("div", { class: "buttons" }, el("button", { type: "submit" }, "Use it")));
  form.onsubmit = (event) => {
    event.preventDefault();
    server.token = field.value;
    again();
  };
  return form;
}
