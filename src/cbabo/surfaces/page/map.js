// The map from limits to designs: the study's network, or a library of solved thresholds.

import { Library } from "./library.js";
import { Network } from "./network.js";

const UNLIKELY = 0.05; // probability below which a network's limits count as unreachable: it aims at none
const NEARLY_WANTED = 1e-3; // by how much a probability may miss the one that a library aims at

export class DesignMap {
  constructor(stated, problem, surrogates, measured) {
    this.problem = problem;
    this.least = stated.kind === "network" ? UNLIKELY : stated.probability - NEARLY_WANTED;
    if (stated.kind === "network") this.network = new Network(stated);
    else this.library = new Library(stated, problem, surrogates, measured);
  }

  // Designs (unit cube, not yet legal) for rows of thresholds: {x}; evaluation where it is a measured one; z and s where known.
  designs(rows) {
    if (this.library) return this.library.answers(rows);
    const theta = Float64Array.from(rows.flatMap((row) => this.problem.theta(row)));
    const x = this.network.designs(theta, rows.length);
    const d = this.problem.variables.length;
    return rows.map((_, b) => ({ x: x.subarray(b * d, (b + 1) * d) }));
  }
}
