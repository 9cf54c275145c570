// A semaphore with a first-in, first-out queue.

export interface Places {
  /**
   * Acquires a permit and resolves with the function that releases it. A caller that aborts `signal` stops waiting and
   * gets no permit: it must check `signal`, and call the function all the same.
   */
  enter(signal: AbortSignal): Promise<() => void>;
}

export function createPlaces(placesMax: number): Places {
  const waiting = new Set<() => void>();
  let taken = 0;

  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      taken -= 1;
      return;
    }
    waiting.delete(next);
    next(); // the permit passes to the next waiter without becoming free
  };
  const once = (act: () => void): (() => void) => {
    let done = false;
    return () => {
      if (done) return;
      done = true;
      act();
    };
  };

  return {
    enter(signal) {
      if (signal.aborted) return Promise.resolve(() => {});
      if (taken < placesMax) {
        taken += 1;
        return Promise.resolve(once(leave));
      }
      return new Promise((resolve) => {
        const admit = (): void => {
          signal.removeEventListener('abort', giveUp);
          resolve(once(leave));
        };
        const giveUp = (): void => {
          waiting.delete(admit);
          resolve(() => {});
        };
        waiting.add(admit);
        signal.addEventListener('abort', giveUp, { once: true });
      });
    },
  };
}
