// Steps: long computations in pieces, so that the server can do other work in between. At each `yield` no trial is
// open, and data read before it may have changed after it.

export type Steps<T> = Generator<void, T>;

/** Hosts examined in one step: about 1 ms. */
export const hostsPerStep = 256;

/** Runs all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
