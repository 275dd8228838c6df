// What the page says in words: what is seen, how an output stands to its limit, and what a limit costs.

import { certain, percent, short, text, withUnit } from "./numbers.js";

export const STATUS_WORDS = { predicted: "Predicted", verified: "Verified: measured", measured: "Measured: breaks a limit", unreachable: "Unreachable" };
const IN_DOUBT = "Measured: noise leaves doubt";

// Whether an answer is a design that was run, whether or not it obeys the limits.
export function isMeasured(answer) {
  return answer.status === "verified" || answer.status === "measured";
}

// Whether a design was run and its outputs are not noisy, so that its limits are known to be obeyed or broken.
export function isSure(answer) {
  return isMeasured(answer) && (answer.probability === 0 || answer.probability === 1);
}

export function statusWords(answer) {
  return answer.status === "measured" && !isSure(answer) ? IN_DOUBT : STATUS_WORDS[answer.status];
}

export function chanceWords(answer) {
  if (!isSure(answer)) return percent(answer.probability);
  return answer.status === "verified" ? "obeyed" : "broken";
}

// What one sees, in a sentence. deciding: names of the limits that bind; conflict: names of limits that cannot hold together, or null.
export function headline(problem, answer, deciding, conflict) {
  const { objective } = problem;
  if (answer.status === "unreachable") {
    if (!conflict) return "No design is predicted to obey these limits.";
    if (!conflict.length) return "No design is predicted to obey even the most relaxed limits.";
    return `No design is predicted to obey these limits: ${listed(conflict)} ${conflict.length > 1 ? "cannot hold together" : "cannot be met"}.`;
  }
  const value = `${certain(answer.mean[0], answer.std[0])}${objective.unit && ` ${objective.unit}`}`;
  if (answer.status === "measured") return `The design for these limits was measured: its ${objective.name} is ${value}, but it does not surely obey them.`;
  const best = objective.direction === "minimize" ? "least" : "greatest";
  const verb = answer.status === "verified" ? "is, as measured," : "is predicted to be";
  const rest = deciding.length ? `${few(deciding)} ${deciding.length > 1 ? "decide" : "decides"}` : "no limit decides: relaxing any of them alone gains nothing";
  return `The ${best} ${objective.name} under these limits ${verb} ${value}; ${rest}.`;
}

// Names as they stand in a sentence, of many only the first.
export function few(names, most = 3) {
  return names.length <= most + 1 ? listed(names) : `${names.slice(0, most).join(", ")} and ${names.length - most} others`;
}

// Names as they stand in a sentence.
export function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

// How much room an output leaves to its limit: a lower limit is fallen short of, an upper one exceeded.
export function roomWords({ constraint, slack, std, standing }) {
  const least = Math.max(std, resolution(constraint));
  if (standing === "violated") return `${constraint.sign > 0 ? "over by" : "falls short by"} ${certain(-slack, std > 0 ? least : 0, 3)}`;
  if (slack <= 0) return "at its limit";
  const left = certain(slack, least, 3);
  return Number(left) === 0 ? "at its limit" : `${left} left`;
}

// The deviation below which digits say nothing about a limit of this range.
export function resolution(constraint) {
  return 0.004 * constraint.scale;
}

// The limits that cost something, by index, the dearest first: by what relaxing over the whole range would gain at the present price.
export function byPrice(problem, prices) {
  const whole = problem.movable.map(({ low, high }, i) => (prices[i]?.value ?? 0) * (high - low));
  return whole.map((_, i) => i).filter((i) => whole[i] > 0).sort((a, b) => whole[b] - whole[a]);
}

// The power of ten that is a readable step of a limit: a tenth to a third of its range.
export function stepOf(constraint) {
  return 10 ** Math.floor(Math.log10((constraint.high - constraint.low) / 3));
}

// What relaxing a limit gains: "1 kN more saves 0.12 kg".
export function priceWords(problem, constraint, price) {
  if (!price) return "–";
  if (!(price.value > 0)) return "gains nothing";
  const step = stepOf(constraint);
  const { objective } = problem;
  const gains = objective.direction === "minimize" ? "saves" : "gains";
  const more = constraint.sign > 0 ? "more" : "less";
  const gain = price.std > 0 ? certain(price.value * step, price.std * step, 3) : text(price.value * step, 2);
  return `${withUnitShort(step, constraint.unit)} ${more} ${gains} ${gain}${objective.unit && ` ${objective.unit}`}`;
}

// The same in full, with its deviation, where it holds, and how it was found.
export function priceSentence(problem, constraint, price, source) {
  if (!price) return "There is no price where the limits cannot be met.";
  const { objective } = problem;
  const unit = constraint.unit || "1";
  const relaxing = constraint.sign > 0 ? "raising" : "lowering";
  const where = price.low === null ? "" : `, from ${short(price.low)} to ${withUnitShort(price.high, constraint.unit)}`;
  const found = source === "server" ? "" : " It is the difference of two approximate answers of this page, over 2 % of the range.";
  if (!(price.value > 0)) return `Relaxing ${constraint.name} alone gains nothing${where}.${found}`;
  const sense = objective.direction === "minimize" ? "lowers" : "raises";
  const spread = price.std > 0 ? ` ± ${text(price.std, 2)}` : "";
  const per = `${objective.unit ? `${objective.unit} ` : ""}per ${unit}`;
  return `The price of ${constraint.name}: ${relaxing} it ${sense} ${objective.name} by ${text(price.value, 3)}${spread} ${per}${where}.${found}`;
}

// How far a limit could go, the others held.
export function reachSentence(constraint, reach) {
  if (!reach || reach.strictest === null) return `${constraint.name} cannot be met at any value while the other limits stay.`;
  const strict = `With the other limits as they are, ${constraint.name} can be met from ${withUnitShort(reach.strictest, constraint.unit)} on`;
  if (reach.gainsAtEnd) return `${strict}, and relaxing it gains up to the end of its range.`;
  return reach.gainsUntil === null ? `${strict}.` : `${strict}, and relaxing it beyond ${withUnitShort(reach.gainsUntil, constraint.unit)} gains nothing.`;
}

function withUnitShort(value, unit) {
  return `${short(value)}${unit && ` ${unit}`}`;
}

// Short enough to be read out.
export function spoken(problem, answer, standings) {
  const count = (kind) => standings.filter((s) => s.standing === kind).map((s) => s.name);
  const violated = count("violated");
  const active = count("active");
  return (
    `${STATUS_WORDS[answer.status]}. ${problem.objective.name} ${withUnit(answer.mean[0], problem.objective.unit)}, ` +
    `probability of feasibility ${percent(answer.probability)}. ` +
    `${violated.length ? `Violated: ${violated.join(", ")}. ` : ""}${active.length ? `Active: ${active.join(", ")}.` : "No limit is active."}`
  );
}
