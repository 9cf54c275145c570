// What this agent knows of its instances beside the ledger and the drivers: what it does to each, what each waits for, and what it has
// established. Nothing of it outlives the process, and nothing of it says what is wanted.

import type { Assignment } from '../../api/agent-protocol.ts';
import type { Driver, Guest, GuestVolume } from '../drivers/driver.ts';
import { textOfVolumes } from './observe.ts';

/** What is being done to an instance at this moment, if it can be cut short. */
export type Operation =
  | { readonly kind: 'create'; readonly incarnation: number; readonly abort: AbortController }
  | { readonly kind: 'start' }
  | { readonly kind: 'resize' }
  | { readonly kind: 'save'; readonly incarnation: number; readonly abort: AbortController }
  | { readonly kind: 'receive'; readonly id: string; readonly abort: AbortController }
  | { readonly kind: 'set-volumes'; readonly wanted: string; readonly abort: AbortController }
  | { readonly kind: 'stop'; readonly driver: Driver; readonly graceMs: number };

/** Nothing of an incarnation is on this host, or nothing of it runs. */
export type Settled = 'absent' | 'stopped';

export interface GuestNotesOptions {
  /** The status to report of an instance may have changed. */
  readonly onChange: (instanceId: string) => void;
  /** The trouble that an instance has with these volumes has changed. */
  readonly onTrouble: (volumeIds: readonly string[]) => void;
}

export class GuestNotes {
  readonly operations = new Map<string, Operation>();
  readonly #options: GuestNotesOptions;
  /** Established by a look at the host. Holds until the entries of the instance change. */
  readonly #settled = new Map<string, Map<number, Settled>>();
  /** Why an instance waits, in words. */
  readonly #waits = new Map<string, string>();
  /** The volumes that a guest was given since the agent's start, as text: a driver reports only which volumes a guest has, not how. */
  readonly #given = new Map<string, string>();
  readonly #volumeTroubles = new Map<string, string>();

  constructor(options: GuestNotesOptions) {
    this.#options = options;
  }

  settledOf(instanceId: string, incarnation: number): Settled | undefined {
    return this.#settled.get(instanceId)?.get(incarnation);
  }

  settle({ instanceId, incarnation }: Assignment, as: Settled): void {
    const incarnations = this.#settled.get(instanceId) ?? new Map<number, Settled>();
    incarnations.set(incarnation, as);
    this.#settled.set(instanceId, incarnations);
    this.#options.onChange(instanceId);
  }

  changed(instanceId: string): void {
    this.#options.onChange(instanceId);
  }

  unsettle(instanceId: string): void {
    this.#settled.delete(instanceId);
  }

  waitOf(instanceId: string): string | undefined {
    return this.#waits.get(instanceId);
  }

  /** `why` undefined: the instance waits no longer. */
  wait(instanceId: string, why: string | undefined): void {
    if (this.#waits.get(instanceId) === why) return;
    if (why === undefined) this.#waits.delete(instanceId);
    else this.#waits.set(instanceId, why);
    this.#options.onChange(instanceId);
  }

  givenTo(instanceId: string): string | undefined {
    return this.#given.get(instanceId);
  }

  noteGiven(instanceId: string, volumes: readonly GuestVolume[]): void {
    if (volumes.length === 0) this.#given.delete(instanceId);
    else this.#given.set(instanceId, textOfVolumes(volumes));
  }

  volumeTroubleOf(instanceId: string): string | undefined {
    return this.#volumeTroubles.get(instanceId);
  }

  /** `message` undefined: the guest has the volumes that it is to have. */
  setVolumeTrouble({ instanceId, volumes }: Assignment, guest: Guest, message: string | undefined): void {
    if (this.#volumeTroubles.get(instanceId) === message) return;
    if (message === undefined) this.#volumeTroubles.delete(instanceId);
    else this.#volumeTroubles.set(instanceId, message);
    const wanted = (volumes ?? []).map(({ volumeId }) => volumeId);
    this.#options.onTrouble([...new Set([...wanted, ...(guest.volumes ?? [])])]);
  }

  /** The guest is removed. Its wait ends with the next step. */
  forgetGuest(instanceId: string): void {
    this.#given.delete(instanceId);
    this.#volumeTroubles.delete(instanceId);
  }

  /** The instance has no entry any more. */
  forgetInstance(instanceId: string): void {
    this.#waits.delete(instanceId);
    this.forgetGuest(instanceId);
  }
}
