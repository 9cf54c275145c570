// The disk of a host: it outlives the agent, not the power. Calls take time and may fail. What the agent wrote stays when the agent dies.
// When the host loses power only synced data is sure: of the rest each file and each name is there, or half, or as it was.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { DiskCalls } from '../../agent/ledger/ledger-file.ts';
import type { Chances } from './chances.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Tally } from '../batch/tally.ts';
import type { Timeline } from './timeline.ts';
import { drawDelayMs, type Weather } from './weather.ts';

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

export class SimDisk {
  readonly #options: SimDiskOptions;
  #names = new Map<string, FileData>();
  #syncedNames = new Map<string, FileData>();
  #powerLosses = 0;

  constructor(options: SimDiskOptions) {
    this.#options = options;
  }

  /** The disk as one life of the agent calls it. */
  calls(clock: ProcessClock): DiskCalls {
    return {
      read: async (path) => {
        await sleep(clock, this.#latencyMs());
        return this.#names.get(path)?.text ?? null;
      },
      write: (path, text) => this.#write(clock, path, text),
      sync: (path) =>
        this.#inKernel(clock, () => {
          this.#failSometimes(`sync ${path}`);
          const file = this.#existing(path);
          file.synced = file.text;
        }),
      rename: (from, to) =>
        this.#inKernel(clock, () => {
          this.#names.set(to, this.#existing(from));
          this.#names.delete(from);
        }),
      syncDirectory: (path) =>
        this.#inKernel(clock, () => {
          this.#failSometimes(`sync ${path}`);
          this.#syncedNames = new Map(this.#names);
        }),
    };
  }

  losePower(): void {
    const { prng, tally } = this.#options;
    this.#powerLosses += 1;
    let lost = 0;
    const after = new Map<string, FileData>();
    for (const path of new Set([...this.#syncedNames.keys(), ...this.#names.keys()].sort())) {
      const was = this.#syncedNames.get(path);
      const is = this.#names.get(path);
      const file = was === is || prng.chance(1, 2) ? is : was;
      if (file !== is) lost += 1;
      if (file === undefined) continue;
      if (file.text !== file.synced) lost += 1;
      after.set(path, { ...file, text: prng.chance(1, 2) ? file.text : tornOf(file, prng) });
    }
    for (const file of after.values()) file.synced = file.text;
    if (lost > 0) tally.hit('disk-lost-unsynced');
    this.#names = after;
    this.#syncedNames = new Map(after);
  }

  async #write(clock: ProcessClock, path: string, text: string): Promise<void> {
    let full = false;
    await this.#inKernel(clock, () => {
      const file = this.#names.get(path) ?? { text: '', synced: undefined };
      this.#names.set(path, file);
      full = this.#fails();
      file.text = full ? text.slice(0, this.#options.prng.below(text.length)) : text;
    });
    if (full) throw new Error(`write ${path}: the false disk was told to be full`);
  }

  /** Once the kernel has the call, the call is carried out though the agent may die. The agent gets the result if it lives. */
  async #inKernel(clock: ProcessClock, act: () => void): Promise<void> {
    const { timeline, prng } = this.#options;
    const landsMs = this.#latencyMs();
    await sleep(clock, prng.below(landsMs + 1));
    const powered = this.#powerLosses;
    await new Promise<void>((resolve, reject) => {
      timeline.schedule(landsMs, () => {
        if (powered !== this.#powerLosses) return; // the power loss took the call and its caller
        try {
          act();
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
    await sleep(clock, 0);
  }

  #latencyMs(): number {
    return drawDelayMs(this.#options.prng, { minMs: 0, meanMs: this.#options.weather().latencyMsMean });
  }

  #fails(): boolean {
    const { chances, weather, prng } = this.#options;
    return chances.befalls('disk-failed', weather().failed, prng);
  }

  #failSometimes(attempted: string): void {
    if (this.#fails()) throw new Error(`${attempted}: the false disk was told to be full`);
  }

  #existing(path: string): FileData {
    const file = this.#names.get(path);
    if (file === undefined) throw new Error(`ENOENT: ${path}`);
    return file;
  }
}

/** A file whose last write was not synced: as it was, or half of the new text. */
function tornOf({ text, synced }: FileData, prng: Prng): string {
  if (text === synced) return text;
  return prng.chance(1, 2) ? (synced ?? '') : text.slice(0, prng.below(text.length + 1));
}
