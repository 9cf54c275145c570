// Finds the address of a guest to which others give it, on a bridge of the operator's: by what this host has heard there, or by the guest's own
// agent. A guest that says none of it has none.

import { backoffMs } from '../../../base/backoff.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { Hands } from './hands.ts';
import type { Run } from './hypervisor.ts';
import { addressOf, interfacesToldBy } from './interface-addresses.ts';
import type { Slot } from './slots.ts';

const retry = { delayMsMin: 1000, delayMsMax: 15_000 }; // a guest may get its address late, or run for months without any; asking costs milliseconds

/** Undefined: its run has ended, or its address was told otherwise. `card`: its MAC address. */
export async function findAddress(
  hands: Hands,
  slot: Slot,
  { run, card }: { readonly run: Run; readonly card: string },
): Promise<string | undefined> {
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
    await sleep(clock, backoffMs(attempt, retry, prng), over.signal);
    if (over.signal.aborted || slot.record === undefined || slot.record.address !== undefined) return undefined;
    const heard = await hands.hypervisor.network?.heardOf?.(card).catch(orNothing);
    const address = heard ?? (await toldBy(hands, slot.instanceId, card).catch(orNothing));
    if (address !== undefined) return address;
  }
}

async function toldBy({ guestAgents }: Hands, instanceId: string, card: string): Promise<string | undefined> {
  const { talk, release } = await guestAgents.use(instanceId);
  try {
    return addressOf(interfacesToldBy(await talk.ask('guest-network-get-interfaces')), card);
  } finally {
    release();
  }
}
