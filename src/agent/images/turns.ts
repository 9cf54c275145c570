// Runs operations one after the other: each starts after the one before has ended, whether it succeeded or failed.

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => {}); // the caller gets the error
    return turn;
  }
}
