// Work that is cut into pieces, so that the page stays quick while it goes on.

// Calls piece() until it returns false, in turns of some milliseconds, with show(done) after each turn.
export class Pieces {
  constructor(piece, show, turn = 10) {
    Object.assign(this, { piece, show, turn, done: false, timer: null });
  }

  // Go on after some milliseconds.
  go(wait) {
    this.stop();
    if (!this.done) this.timer = setTimeout(() => this.#work(), wait);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  #work() {
    const until = performance.now() + this.turn;
    while (!this.done && performance.now() < until) this.done = !this.piece();
    this.show(this.done);
    this.go(0);
  }
}

// Work written as a generator, which yields where the page may draw; shown is called with what it returns.
export function generated(steps, shown, turn = 10) {
  let result;
  const piece = () => {
    const { done, value } = steps.next();
    if (done) result = value;
    return !done;
  };
  return new Pieces(piece, (done) => done && shown(result), turn);
}

// 0 .. count - 1, ends first, then ever finer: any beginning of it is spread evenly.
export function coarseFirst(count) {
  const order = [0, count - 1];
  for (let step = 2 ** Math.ceil(Math.log2(count)) / 2; step >= 1; step /= 2) {
    for (let i = step; i < count - 1; i += 2 * step) order.push(i);
  }
  return order;
}
