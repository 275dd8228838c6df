// A network from limits to designs, as the study has trained it.

import { decoded, dot } from "./numbers.js";

const TOGETHER = 4; // thresholds that are answered together: every weight is then read once for four

export class Network {
  constructor(stated) {
    const flat = decoded(stated.weights);
    this.sizes = stated.sizes;
    this.layers = [];
    for (let i = 0, start = 0; i + 1 < this.sizes.length; i++) {
      const [width, height] = [this.sizes[i], this.sizes[i + 1]];
      const middle = start + width * height;
      this.layers.push({ width, height, weight: flat.subarray(start, middle), bias: flat.subarray(middle, middle + height) });
      start = middle + height;
    }
  }

  // Designs (count x d, unit cube, not yet legal) at theta (count x k).
  designs(theta, count) {
    let h = theta;
    this.layers.forEach((layer, i) => {
      const a = layerOutputs(layer, h, count);
      const last = i === this.layers.length - 1;
      for (let e = 0; e < a.length; e++) a[e] = (last ? 1 : a[e]) / (1 + Math.exp(-a[e]));
      h = a;
    });
    return h;
  }
}

function layerOutputs({ width, height, weight, bias }, h, count) {
  const out = new Float64Array(count * height);
  let b = 0;
  for (; b + TOGETHER <= count; b += TOGETHER) fourRows(h, b, width, height, weight, bias, out);
  for (; b < count; b++) {
    for (let r = 0; r < height; r++) out[b * height + r] = bias[r] + dot(weight, r * width, h, b * width, width);
  }
  return out;
}

function fourRows(h, b, width, height, weight, bias, out) {
  const [h0, h1, h2, h3] = [b * width, (b + 1) * width, (b + 2) * width, (b + 3) * width];
  for (let r = 0; r < height; r++) {
    let s0 = bias[r];
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    for (let c = 0, at = r * width; c < width; c++, at++) {
      const w = weight[at];
      s0 += w * h[h0 + c];
      s1 += w * h[h1 + c];
      s2 += w * h[h2 + c];
      s3 += w * h[h3 + c];
    }
    out[b * height + r] = s0;
    out[(b + 1) * height + r] = s1;
    out[(b + 2) * height + r] = s2;
    out[(b + 3) * height + r] = s3;
  }
}
