// Follows the address of a guest to which others give it, on a bridge of the operator's: by what this host has heard there, or by the guest's own
// agent. A guest that says none of it has none.

import { backoffMs } from '../../../../base/backoff.ts';
import { sleep } from '../../../../base/clock.ts';
import { describeError } from '../../../../base/log.ts';
import type { Hands } from '../hands.ts';
import type { Run } from '../hypervisor.ts';
import { addressOf, interfacesToldBy } from './interface-addresses.ts';
import type { Slot } from '../slots.ts';

const retry = { delayMsMin: 1000, delayMsMax: 15_000 }; // a guest may get its address late, or run for months without any; asking costs milliseconds
const knownLookMs = 30_000; // a lease changes in minutes at the soonest

export interface AddressHands {
  readonly clock: Hands['clock'];
  readonly prng: Hands['prng'];
  readonly log: Hands['log'];
  readonly hypervisor: Pick<Hands['hypervisor'], 'network'>;
  readonly guestAgents: Hands['guestAgents'];
}

/** Tells the address as soon as it is known, and each that follows. Resolves when the run has ended. `card`: the guest's MAC address. */
export async function watchAddress(
  hands: AddressHands,
  slot: Pick<Slot, 'instanceId' | 'record'>,
  {
    run,
    card,
    found,
  }: {
    readonly run: Pick<Run, 'ended'>;
    readonly card: string;
    readonly found: (address: string, sure: boolean) => void;
  },
): Promise<void> {
  const { clock, prng, log } = hands;
  const over = new AbortController();
  const end = (): void => over.abort();
  run.ended.then(end, end);
  const orNothing = (error: unknown): undefined =>
    void log.debug('cannot ask for the address of a guest', {
      instance: slot.instanceId,
      error: describeError(error),
    });
  for (let attempt = 0; ; attempt++) {
    const known = slot.record?.address !== undefined;
    await sleep(clock, known ? knownLookMs : backoffMs(attempt, retry, prng), over.signal);
    if (over.signal.aborted || slot.record === undefined) return;
    const current = slot.record.address;
    const heard = await hands.hypervisor.network?.heardOf?.(card, current).catch(orNothing);
    const address = heard ?? (await toldBy(hands, slot.instanceId, card).catch(orNothing));
    if (address !== undefined && !over.signal.aborted) found(address, true);
  }
}

async function toldBy(
  { guestAgents }: Pick<Hands, 'guestAgents'>,
  instanceId: string,
  card: string,
): Promise<string | undefined> {
  const { talk, release } = await guestAgents.use(instanceId);
  try {
    return addressOf(interfacesToldBy(await talk.ask('guest-network-get-interfaces')), card);
  } finally {
    release();
  }
}
