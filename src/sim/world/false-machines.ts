// What makes machines for spares: two services that outlive the servers which call them. `maker` knows each machine by the id of its spare and
// makes none twice; `blind` makes one for each call, and cannot be searched.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { ProvisionOutcome, Provisioner, SpareRun } from '../../server/spares/provisioner.ts';
import type { SpareMeans } from '../../server/spares/provisioners/index.ts';
import type { Tally } from '../batch/tally.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Timeline } from './timeline.ts';

export interface FalseMachinesOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly stormy: () => boolean;
  readonly tally: Tally;
  readonly onMadeTwice: (message: string) => void;
}

export const provisioners = ['maker', 'blind'] as const;
type Name = (typeof provisioners)[number];

interface Machine {
  is: 'making' | 'there' | 'failed' | 'gone';
  /** The attempt that makes it, or has made it. */
  attempt: number;
}

const askMs = 300;
/** Hundredths, in the storm. */
const rates = { failed: 20, notReady: 30, notReleased: 20 } as const;

export class FalseMachines {
  readonly #options: FalseMachinesOptions;
  readonly #machines = new Map<string, Machine>();
  readonly #abandoned = new Set<string>();

  constructor(options: FalseMachinesOptions) {
    this.#options = options;
  }

  /** Of a process that lives by this clock. */
  meansFor(clock: ProcessClock): SpareMeans {
    return {
      provisioners: new Map(provisioners.map((name) => [name, this.#provisioner(name, clock)])),
      probe: async (_, { id }) => {
        await sleep(clock, 1 + this.#options.prng.below(200));
        const ready = this.isThere(id) && !this.#goesWrong('notReady');
        return { ready, message: ready ? 'it answers' : 'it does not answer' };
      },
    };
  }

  isThere(id: string): boolean {
    return this.#machines.get(id)?.is === 'there';
  }

  /** Ids of those that exist, or will, and still have to be undone. */
  get owed(): readonly string[] {
    return [...this.#machines]
      .filter(([id, { is }]) => (is === 'there' || is === 'making') && !this.#abandoned.has(id))
      .map(([id]) => id);
  }

  /** A person takes care of it. */
  abandon(id: string): void {
    this.#abandoned.add(id);
  }

  isAbandoned(id: string): boolean {
    return this.#abandoned.has(id);
  }

  #provisioner(name: Name, clock: ProcessClock): Provisioner {
    return {
      provision: async ({ id, attempt }, run) => {
        await this.#onTheWay(clock);
        if (name === 'blind' && run.resumed) return { is: 'unknown', why: 'the service has no search' };
        const machine = this.#begin(name, id, attempt);
        return this.#made(machine, clock, run);
      },
      release: async ({ id }) => {
        await this.#onTheWay(clock);
        if (this.#goesWrong('notReleased')) return { is: 'failed', why: 'the service is busy' };
        this.#machines.set(id, { is: 'gone', attempt: 0 });
        this.#options.tally.hit('machine-released');
        return { is: 'done' };
      },
    };
  }

  #begin(name: Name, id: string, attempt: number): Machine {
    const { timeline, prng, tally, onMadeTwice } = this.#options;
    const known = this.#machines.get(id);
    const isAgain = known !== undefined && (known.is !== 'failed' || known.attempt >= attempt);
    if (isAgain && name === 'blind') onMadeTwice(`attempt ${attempt} of ${id} was begun while it was ${known.is}`);
    if (isAgain) return known;
    const machine: Machine = { is: 'making', attempt };
    this.#machines.set(id, machine);
    const fails = this.#goesWrong('failed');
    timeline.schedule(100 + prng.below(6_000), () => {
      if (this.#machines.get(id) === machine) machine.is = fails ? 'failed' : 'there';
      tally.hit(fails ? 'machine-failed' : 'machine-made');
    });
    return machine;
  }

  async #made(machine: Machine, clock: ProcessClock, { signal, progress }: SpareRun): Promise<ProvisionOutcome> {
    while (machine.is === 'making' && !signal.aborted) {
      progress('it is being made');
      await sleep(clock, askMs, signal);
    }
    if (machine.is === 'there') return { is: 'done', address: '10.0.0.9' };
    return { is: 'failed', why: machine.is === 'gone' ? 'it was released' : 'it could not be made' };
  }

  #onTheWay(clock: ProcessClock): Promise<void> {
    return sleep(clock, 1 + this.#options.prng.below(this.#options.stormy() ? 1_500 : 50));
  }

  #goesWrong(what: keyof typeof rates): boolean {
    const { stormy, prng } = this.#options;
    return prng.chance(rates[what], 100) && stormy();
  }
}
