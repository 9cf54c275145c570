// Transit: what happens to messages on their way. They are late, lost or repeated, as the weather has it, and partitions stop them.

import type { Prng } from '../../base/prng.ts';
import type { Tally } from '../batch/tally.ts';
import type { Chances } from './chances.ts';
import type { Partition, Peer } from './peer.ts';
import type { Timeline } from './timeline.ts';
import { drawDelayMs, type Weather } from './weather.ts';

export interface TransitOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly weather: () => Weather['network'];
  readonly tally: Tally;
  readonly chances: Chances;
}

export class Transit {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly #options: TransitOptions;
  /** By host. */
  readonly #partitions = new Map<string, Partition>();

  constructor(options: TransitOptions) {
    this.#options = options;
    this.timeline = options.timeline;
    this.prng = options.prng;
  }

  part(host: string, partition: Partition): void {
    this.#partitions.set(host, partition);
  }

  heal(host: string): void {
    this.#partitions.delete(host);
  }

  /** Whether this befalls the message. */
  hit(kind: 'requestLost' | 'answerLost' | 'duplicate' | 'slow' | 'streamCut' | 'streamStalled'): boolean {
    const { chances, weather } = this.#options;
    return chances.befalls(`network-${kind}`, weather()[kind], this.prng);
  }

  /** How long a message takes. */
  delayMs(): number {
    const { delayMsMin, delayMsMean } = this.#options.weather();
    const usualMs = drawDelayMs(this.prng, { minMs: delayMsMin, meanMs: delayMsMean });
    return this.hit('slow') ? 200 + 100 * usualMs : usualMs;
  }

  /** Whether a partition stops a message of this peer. */
  parted(peer: Peer, direction: 'to-server' | 'from-server'): boolean {
    const partition = peer.host === undefined ? undefined : this.#partitions.get(peer.host);
    if (partition !== 'both' && partition !== direction) return false;
    this.#options.tally.hit('partition-loss');
    return true;
  }
}
