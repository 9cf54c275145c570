// The disk of a host: it outlives the agent, not the power. Calls take time and may fail; what the agent wrote stays when it dies, but
// when the host loses power only what was synced is sure: of the rest each file and each name is there, or half, or as it was.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { DiskCalls } from '../../agent/ledger-file.ts';
import type { Chances } from './chances.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Tally } from '../batch/tally.ts';
import type { Timeline } from './timeline.ts';
import { drawDelayMs, type Weather } from './weather.ts';

export interface SimDisk {
  /** As one life of the agent sees it. */
  calls(clock: ProcessClock): DiskCalls;
  losePower(): void;
}

export interface SimDiskOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly weather: () => Weather['disk'];
  readonly tally: Tally;
  readonly chances: Chances;
}

interface FileData {
  text: string;
  /** What is on the platter; undefined: nothing yet. */
  synced: string | undefined;
}

export function createSimDisk({ timeline, prng, weather, tally, chances }: SimDiskOptions): SimDisk {
  let names = new Map<string, FileData>();
  let syncedNames = new Map<string, FileData>();
  let powerLosses = 0;
  const latencyMs = (): number => drawDelayMs(prng, { minMs: 0, meanMs: weather().latencyMsMean });

  /** Once the kernel has it, it is done though the agent may die; the agent hears of it if it lives. */
  const inKernel = async (clock: ProcessClock, act: () => void): Promise<void> => {
    const landsMs = latencyMs();
    await sleep(clock, prng.below(landsMs + 1));
    const powered = powerLosses;
    await new Promise<void>((resolve, reject) => {
      timeline.schedule(landsMs, () => {
        if (powered !== powerLosses) return; // it went with the power, and so did whoever awaits it
        try {
          act();
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
    await sleep(clock, 0);
  };

  const fails = (): boolean => chances.befalls('disk-failed', weather().failed, prng);
  const failSometimes = (attempted: string): void => {
    if (!fails()) return;
    throw new Error(`${attempted}: the false disk was told to be full`);
  };

  const existing = (path: string): FileData => {
    const file = names.get(path);
    if (file === undefined) throw new Error(`ENOENT: ${path}`);
    return file;
  };

  return {
    calls: (clock) => ({
      async read(path) {
        await sleep(clock, latencyMs());
        return names.get(path)?.text ?? null;
      },
      async write(path, text) {
        let full = false;
        await inKernel(clock, () => {
          const file = names.get(path) ?? { text: '', synced: undefined };
          names.set(path, file);
          full = fails();
          file.text = full ? text.slice(0, prng.below(text.length)) : text;
        });
        if (full) throw new Error(`write ${path}: the false disk was told to be full`);
      },
      async sync(path) {
        await inKernel(clock, () => {
          failSometimes(`sync ${path}`);
          const file = existing(path);
          file.synced = file.text;
        });
      },
      async rename(from, to) {
        await inKernel(clock, () => {
          names.set(to, existing(from));
          names.delete(from);
        });
      },
      async syncDirectory(path) {
        await inKernel(clock, () => {
          failSometimes(`sync ${path}`);
          syncedNames = new Map(names);
        });
      },
    }),
    losePower() {
      powerLosses += 1;
      let lost = 0;
      const after = new Map<string, FileData>();
      for (const path of new Set([...syncedNames.keys(), ...names.keys()].sort())) {
        const was = syncedNames.get(path);
        const is = names.get(path);
        const file = was === is || prng.chance(1, 2) ? is : was;
        if (file !== is) lost += 1;
        if (file === undefined) continue;
        if (file.text !== file.synced) lost += 1;
        after.set(path, { ...file, text: prng.chance(1, 2) ? file.text : tornOf(file, prng) });
      }
      for (const file of after.values()) file.synced = file.text;
      if (lost > 0) tally.hit('disk-lost-unsynced');
      names = after;
      syncedNames = new Map(after);
    },
  };
}

/** A file whose last write was not synced: as it was, or half of what it should be. */
function tornOf({ text, synced }: FileData, prng: Prng): string {
  if (text === synced) return text;
  return prng.chance(1, 2) ? (synced ?? '') : text.slice(0, prng.below(text.length + 1));
}
