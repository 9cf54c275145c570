// Steps: long answers in pieces, so that whoever serves them can let others in between. Each `yield` is a place where nothing is half
// done: no trial is open, and what was read before it may have changed after it.

export type Steps<T> = Generator<void, T>;

/** So many hosts are looked at in one step: some 1 ms. */
export const hostsPerStep = 256;

/** All steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
