// Arrays out of the document, the distribution of errors, and numbers as people read them.

export function decoded(stated) {
  const bytes = Uint8Array.from(atob(stated.f64), (c) => c.charCodeAt(0));
  return new Float64Array(bytes.buffer);
}

// The inner product of `count` elements of a and b; four sums, which do not wait for each other.
export function dot(a, from, b, start, count) {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  let i = 0;
  for (; i + 3 < count; i += 4) {
    s0 += a[from + i] * b[start + i];
    s1 += a[from + i + 1] * b[start + i + 1];
    s2 += a[from + i + 2] * b[start + i + 2];
    s3 += a[from + i + 3] * b[start + i + 3];
  }
  for (; i < count; i++) s0 += a[from + i] * b[start + i];
  return s0 + s1 + (s2 + s3);
}

// P(Z <= z) of Student's t with 4 degrees of freedom and unit variance, of which all stated probabilities are.
export function student(z) {
  if (Math.abs(z) > 1e100) return z > 0 ? 1 : 0; // An output without a limit on one side; squares would overflow.
  const root = Math.sqrt(2 + z * z);
  const plus = z > 0 ? 1 + z / root : 2 / (root * (root - z));
  return 0.25 * plus * plus * (3 - plus);
}

// z >= 0 at which its density has a value; 0 where it never is so large.
export function studentMargin(density) {
  return Math.sqrt(Math.max((3 / density) ** 0.4 - 2, 0));
}

// P(low <= Z <= high).
export function between(low, high) {
  if (high <= low) return 0;
  return low > 0 ? student(-low) - student(-high) : student(high) - student(low);
}

// Four significant digits, without an exponent where it can be read without one.
export function text(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(digits - 1).replace("e+", "e").replaceAll("-", "−");
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(places, 20)).replace("-", "−");
}

// The same without zeros at the end.
export function short(value, digits = 4) {
  return text(value, digits).replace(/(\.\d*?)0+(?=$|e)/, "$1").replace(/\.(?=$|e)/, "");
}

// As Python's format "g": in sentences that Python says too.
export function general(value, digits = 6) {
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const bare = (number) => (number.includes(".") ? number.replace(/\.?0+$/, "") : number);
  if (power >= -4 && power < digits) return bare(value.toFixed(digits - 1 - power));
  return `${bare(mantissa)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

// A number beside its standard deviation: no digit behind the second one of the deviation, and five significant ones at most.
export function certain(value, std, most = 5) {
  if (!Number.isFinite(value)) return "–";
  if (!(std > 0)) return short(value, most);
  const size = Math.abs(value);
  const places = Math.min(1 - Math.floor(Math.log10(std)), size > 0 ? Math.max(most - 1 - Math.floor(Math.log10(size)), 0) : Infinity);
  if (places > 8 || size >= 1e7 || std >= 1e7) return text(value, most);
  const step = 10 ** -places;
  const shown = places < 0 ? String(Math.round(value / step) * step) : value.toFixed(places);
  return (Number(shown) === 0 ? shown.replace("-", "") : shown).replace("-", "−");
}

// The deviation of such a number: " ± 0.12", or that it is smaller than the last digit that is shown; nothing where it is known exactly.
// floor: the least deviation that digits tell.
export function spread(value, std, floor = 0) {
  if (!(std > 0)) return "";
  const shown = certain(value, Math.max(std, floor)).split(".")[1] ?? "";
  const last = 10 ** -shown.length;
  return std < last ? ` ± <${last.toFixed(shown.length)}` : ` ± ${text(std, 2)}`;
}

// A number as it was stated: nothing is rounded away.
export function stated(value) {
  return String(Number(value.toPrecision(15))).replace("-", "−");
}

export function withUnit(value, unit, digits = 4) {
  return unit ? `${text(value, digits)} ${unit}` : text(value, digits);
}

// As few digits as tell neighbours of a range apart: for number fields.
export function rounded(value, range) {
  const step = 10 ** (Math.floor(Math.log10(range)) - 4);
  return Number((Math.round(value / step) * step).toPrecision(12));
}

export function percent(share) {
  if (share > 0.999) return share < 1 ? "> 99.9 %" : "100 %";
  if (share < 0.001) return share > 0 ? "< 0.1 %" : "0 %";
  return `${(100 * share).toFixed(1)} %`;
}

// About `count` round numbers between low and high, as [value, text] with no more digits than tell them apart.
export function ticks(low, high, count = 5) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough * 0.999) * power;
  const size = Math.max(Math.abs(low), Math.abs(high));
  const digits = Math.max(1, Math.ceil(Math.log10(size / step) - 1e-9) + 1);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push([i * step, short(i === 0 ? 0 : i * step, digits)]);
  return found;
}
