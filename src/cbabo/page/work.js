// Work that is cut into pieces, so that the page stays quick while it goes on.

// Calls piece() until it returns false, in turns of some milliseconds, with show(done) after each turn.
export class Pieces {
  constructor(piece, show, turn = 10) {
    Object.assign(this, { piece, show, turn, done: false, timer: null });
  }

  // Go on: at once for `now` milliseconds, or after a wait.
  go({ now = 0, wait = 0 } = {}) {
    this.stop();
    if (this.done) return;
    if (wait > 0) this.#later(wait);
    else this.#work(now);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  #later(wait) {
    this.timer = setTimeout(() => this.#work(this.turn), wait);
  }

  #work(budget) {
    const until = performance.now() + budget;
    while (!this.done && performance.now() < until) this.done = !this.piece();
    this.show(this.done);
    if (!this.done) this.#later(0);
  }
}

// 0 .. count - 1, ends first, then ever finer: any beginning of it is spread evenly.
export function coarseFirst(count) {
  const order = [0, count - 1];
  for (let step = 2 ** Math.ceil(Math.log2(count)) / 2; step >= 1; step /= 2) {
    for (let i = step; i < count - 1; i += 2 * step) order.push(i);
  }
  return order;
}
