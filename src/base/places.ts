// So many at a time, the others in line: first come, first served. Knows nothing of what is done in a place.

export interface Places {
  /**
   * Resolves with how to leave, when there is a place. Who gives up, by `signal`, waits no longer and gets none: the caller looks at
   * `signal`, and leaves all the same.
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
    next(); // the place goes on to the next, and was never free
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
