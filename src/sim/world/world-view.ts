// The true world of guests as one life of an agent sees it: on its own clock, with changes as events of its own. When that
// life ends, so does what it hears; the guests stay.

import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { ProcessClock } from './process-clock.ts';

export function worldView(world: FakeWorld, clock: ProcessClock): FakeWorld {
  return {
    ...world,
    clock,
    onChange(host, listener) {
      let heard = true;
      const end = world.onChange(host, (instanceId) => {
        if (!heard || !clock.alive) return;
        clock.setTimer(0, () => {
          if (heard) listener(instanceId);
        });
      });
      return () => {
        heard = false;
        end();
      };
    },
  };
}
