// Taking pictures and tables out of the page: copied as text, as CSV, as SVG and as PNG.

import { copied } from "./answer.js";
import { el, svg } from "./dom.js";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "font-family", "paint-order", "visibility", "text-anchor"];
const SHARPNESS = 2; // pixels of a PNG for each of the page
const FORMULA = /^[=+\-@\t\n]/; // how a text begins that a spreadsheet runs as a formula

// Offer to take a plot or a table out. name: of files; picture: returns the <svg>, or null; numbers: returns {names, rows}.
export function offerExport(place, name, picture, numbers) {
  const button = (words, act) => el("button", { type: "button", onclick: act }, words);
  const copy = button("Copy numbers", () => copied(copy, separated(numbers(), "\t")));
  const buttons = [copy, button("CSV", () => download(`${name}.csv`, new Blob([separated(numbers(), ",")], { type: "text/csv" })))];
  if (picture) {
    buttons.push(button("SVG", () => download(`${name}.svg`, new Blob([svgText(picture())], { type: "image/svg+xml" }))));
    buttons.push(button("PNG", () => png(picture()).then((blob) => download(`${name}.png`, blob))));
  }
  place.append(el("details", { class: "export" }, el("summary", {}, "Export"), el("div", { class: "buttons" }, ...buttons)));
}

// A table as text; numbers in full, and no text that a spreadsheet would run as a formula.
export function separated({ names, rows }, separator) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const safe = FORMULA.test(value) ? `'${value}` : value;
    return /["\n\r,\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [names, ...rows].map((row) => row.map(cell).join(separator)).join("\n") + "\n";
}

// A picture as a file of its own: what the page's style says about each part is written into it.
export function svgText(root) {
  const [, , width, height] = root.getAttribute("viewBox").split(" ").map(Number);
  const copy = root.cloneNode(true);
  const [before, after] = [root, copy].map((part) => [part, ...part.querySelectorAll("*")]);
  before.forEach((part, i) => {
    const style = getComputedStyle(part);
    for (const name of STYLES) after[i].setAttribute(name, style.getPropertyValue(name));
    after[i].removeAttribute("class");
  });
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  copy.prepend(svg("rect", { width, height, fill: paper }));
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.querySelectorAll("[aria-hidden]").forEach((part) => part.removeAttribute("aria-hidden"));
  return new XMLSerializer().serializeToString(copy);
}

async function png(root) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svgText(root))}`;
  await image.decode();
  const canvas = el("canvas", { width: image.width * SHARPNESS, height: image.height * SHARPNESS });
  const context = canvas.getContext("2d");
  context.scale(SHARPNESS, SHARPNESS);
  context.drawImage(image, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function download(name, blob) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
