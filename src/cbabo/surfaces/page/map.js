// The map from limits to designs: the study's network, or a library of solved thresholds.

import { Library } from "./library.js";
import { Network } from "./network.js";

export class DesignMap {
  // requirements: the Requirements; measured: the measured evaluations; tuning: the numbers that the document shares with Python.
  constructor(stated, problem, requirements, measured, tuning) {
    this.problem = problem;
    if (stated.kind === "network") this.network = new Network(stated);
    else this.library = new Library(stated, problem, requirements, measured, tuning);
    this.least = this.library ? this.library.least : tuning.unlikely; // A network aims at no probability.
  }

  // Designs (unit cube, not yet legal) for rows of thresholds: {x}; evaluation where it is a measured one; z and s where known.
  // Outside the box the network answers the nearest thresholds inside, where it was trained.
  designs(rows) {
    if (this.library) return this.library.answers(rows);
    const theta = Float64Array.from(rows.flatMap((row) => this.problem.inBox(this.problem.theta(row))));
    const x = this.network.designs(theta, rows.length);
    const { d, region } = this.problem;
    const designs = rows.map((_, b) => x.subarray(b * d, (b + 1) * d));
    return designs.map((design) => ({ x: region ? region.repaired(design) : design }));
  }
}
