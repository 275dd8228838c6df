// Making elements. Text is always set as text: nothing from a study is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

// el("p", {class: "note", onclick: f}, "text", child): attributes, listeners (on...), children.
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined));
}

// Set a text only where it differs: what stays the same is not laid out again.
export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// A table with a header row; cells are text or elements, numbers stand to the right.
export function table(caption, names, rows) {
  const cell = (tag, content, numeric) => el(tag, numeric ? { class: "number" } : {}, content);
  const numeric = names.map((_, i) => rows.some((row) => typeof row[i] === "string" && /^[−\d]/.test(row[i])));
  return el(
    "table",
    {},
    el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, ...names.map((name, i) => cell("th", name, numeric[i])))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((content, i) => cell("td", content, numeric[i]))))),
  );
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return element;
}
