// Plots in SVG, small enough to be drawn anew while a slider moves.

import { el, svg } from "./dom.js";
import { ticks } from "./numbers.js";

const MARGIN = { left: 52, right: 14, top: 22, bottom: 36 };

// Draws axes into an <svg> and returns where data go: {x, y, left, right, top, bottom, add}.
// spec: {x: {label, low, high}, y: {label, low, high}, description, margin}
export function axes(root, spec) {
  const width = root.clientWidth || 480;
  const height = root.clientHeight || 300;
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("role", "img");
  root.setAttribute("aria-label", spec.description);
  const margin = { ...MARGIN, ...spec.margin };
  const [left, right, top, bottom] = [margin.left, width - margin.right, margin.top, height - margin.bottom];
  const x = (v) => left + ((v - spec.x.low) / (spec.x.high - spec.x.low)) * (right - left);
  const y = (v) => bottom - ((v - spec.y.low) / (spec.y.high - spec.y.low)) * (bottom - top);
  const marks = svg("g", { class: "axes", "aria-hidden": "true" });
  for (const [v, words] of ticks(spec.x.low, spec.x.high, Math.max(2, Math.round((right - left) / 80)))) {
    marks.append(svg("path", { class: "grid", d: `M${x(v)} ${top}V${bottom}` }));
    marks.append(svg("text", { x: x(v), y: bottom + 15, "text-anchor": "middle" }, words));
  }
  for (const [v, words] of ticks(spec.y.low, spec.y.high, Math.max(2, Math.round((bottom - top) / 45)))) {
    marks.append(svg("path", { class: "grid", d: `M${left} ${y(v)}H${right}` }));
    marks.append(svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, words));
  }
  marks.append(svg("path", { class: "frame", d: `M${left} ${top}V${bottom}H${right}` }));
  marks.append(svg("text", { class: "label", x: right, y: height - 4, "text-anchor": "end" }, spec.x.label));
  marks.append(svg("text", { class: "label", x: 2, y: 12 }, spec.y.label));
  const data = svg("g", { class: "data", "aria-hidden": "true" });
  root.replaceChildren(marks, data);
  return { x, y, left, right, top, bottom, add: (...shapes) => data.append(...shapes) };
}

export function line(points, className) {
  return svg("path", { class: className, d: pathOf(points) });
}

export function band(upper, lower, className) {
  return svg("path", { class: className, d: upper.length ? `${pathOf([...upper, ...lower.toReversed()])}Z` : "" });
}

// Many round dots in one path.
export function dots(points, className) {
  return svg("path", { class: `dots ${className}`, d: points.map(([px, py]) => `M${px.toFixed(1)} ${py.toFixed(1)}h0`).join("") });
}

// Signs that are told apart by their shape: disc slack, diamond active, cross violated.
export function sign(standing) {
  const shapes = {
    slack: "M6 1.5a4.5 4.5 0 1 0 .01 0Z",
    active: "M6 .5 11.5 6 6 11.5 .5 6Z",
    violated: "M2.2 1 6 4.8 9.8 1 11 2.2 7.2 6 11 9.8 9.8 11 6 7.2 2.2 11 1 9.8 4.8 6 1 2.2Z",
    verified: "M1 6.5 4.6 10 11 2.5 9.6 1.3 4.4 7.2 2.3 5.1Z",
    predicted: "M6 1.5a4.5 4.5 0 1 0 .01 0ZM6 3.6a2.4 2.4 0 1 1-.01 0Z",
    measured: "M2.2 1 6 4.8 9.8 1 11 2.2 7.2 6 11 9.8 9.8 11 6 7.2 2.2 11 1 9.8 4.8 6 1 2.2Z",
    unreachable: "M2.2 1 6 4.8 9.8 1 11 2.2 7.2 6 11 9.8 9.8 11 6 7.2 2.2 11 1 9.8 4.8 6 1 2.2Z",
  };
  return svg("svg", { class: `sign ${standing}`, viewBox: "0 0 12 12", "aria-hidden": "true" }, svg("path", { d: shapes[standing] }));
}

// Low and high with a margin around them, and not closer than `least`: rounding must not look like a finding.
export function padded(values, share = 0.06, least = 0) {
  const kept = values.filter(Number.isFinite);
  if (!kept.length) return { low: 0, high: 1 };
  const [low, high] = [Math.min(...kept), Math.max(...kept)];
  const needed = high > low ? share * (high - low) : Math.abs(low) * 0.1 || 1;
  const margin = Math.max(needed, 0.5 * (least - (high - low)));
  return { low: low - margin, high: high + margin };
}

// An entry of a plot's key.
export function key(kind, words) {
  return el("span", {}, el("i", { class: `swatch ${kind}` }), words);
}

// What an axis says: a name, how it is limited, and its unit.
export function labelled(name, unit, symbol = "") {
  return `${name}${symbol && ` ${symbol}`}${unit && ` [${unit}]`}`;
}

function pathOf(points) {
  return points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
}
