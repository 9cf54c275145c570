// Notices that a machine which runs has never shown a sign of life, and says so on the guest until it shows one. It only looks: one that is
// merely slow, or says nothing to anybody by its nature, runs on.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { backoffMs } from '../../../base/backoff.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { consoleSize } from './ways-in/console-log.ts';
import { guestFiles } from './guest-files.ts';
import type { Hands } from './hands.ts';
import type { Run, Trouble } from './hypervisor.ts';
import type { Slot } from './slots.ts';

export const noSignOfLife = 'NoSignOfLife';

/** An agent that is asked in vain costs three seconds of waiting, and nothing else. */
const retry = { delayMsMin: 5000, delayMsMax: 60_000 };

/** Resolves when there was a sign, or the run has ended. Never rejects. */
export async function watchForLife(hands: Hands, slot: Slot, run: Run): Promise<void> {
  const { clock, log, slots } = hands;
  const over = new AbortController();
  const end = (): void => over.abort();
  run.ended.then(end, end);
  const isOurs = (): boolean => slot.record?.reason?.code === noSignOfLife;
  const nowMs = clock.nowMs();
  const ranMs = Math.max(0, nowMs - (slot.record?.startedAtMs ?? nowMs));
  await sleep(clock, Math.max(0, hands.silenceMsMax - ranMs), over.signal);
  for (let attempt = 0; !over.signal.aborted && slot.run === run && !slots.closed; attempt++) {
    // One that stands still for a wish, or for want of room, can show none, and its time does not count.
    const held = slot.record?.suspended === true || (slot.record?.reason !== undefined && !isOurs());
    if (held) attempt = 0;
    else {
      const alive = await showsLife(hands, slot).catch((error: unknown) => {
        log.debug('cannot see whether a guest lives', { instance: slot.instanceId, error: describeError(error) });
        return undefined;
      });
      if (slot.run !== run || over.signal.aborted) return;
      if (alive === true) {
        if (isOurs()) slots.saveLater(slot, { reason: undefined });
        return;
      }
      if (alive === false && slot.record?.reason === undefined && slot.record?.suspended !== true) {
        const reason = saidOf(hands, slot);
        log.warn('a guest shows no sign of life', { instance: slot.instanceId });
        slots.saveLater(slot, { reason });
      }
    }
    const delayMs = held ? hands.silenceMsMax : backoffMs(attempt, retry, hands.prng);
    await sleep(clock, Math.min(delayMs, hands.silenceMsMax), over.signal);
  }
}

/** The cheap signs first. What the host's own network gave to a guest says nothing of the guest. */
async function showsLife(hands: Hands, slot: Slot): Promise<boolean> {
  const { record } = slot;
  if (record === undefined || record.ready) return true;
  if (record.address !== undefined && record.network?.kind !== 'nat') return true;
  const path = join(await hands.directoryOf(slot.instanceId), guestFiles.console);
  if ((await consoleSize(path)) > record.bootOffset) return true;
  if (record.network !== undefined && (await packetsFrom(record.network.tap)) > 0) return true;
  return hasAgent(hands, slot.instanceId);
}

/** Sent by the guest, so received at the host's end of its interface. */
async function packetsFrom(tap: string): Promise<number> {
  return Number(await readFile(`/sys/class/net/${tap}/statistics/rx_packets`, 'utf8').catch(() => '0'));
}

async function hasAgent({ guestAgents, log }: Hands, instanceId: string): Promise<boolean> {
  try {
    const { talk, release } = await guestAgents.use(instanceId);
    try {
      await talk.ask('guest-ping');
      return true;
    } finally {
      release();
    }
  } catch (error) {
    log.debug('no guest agent', { instance: instanceId, error: describeError(error) });
    return false;
  }
}

function saidOf({ silenceMsMax }: Hands, { record }: Slot): Trouble {
  const seconds = Math.round(silenceMsMax / 1000);
  const lasted = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  const seen = ['nothing on its console', record?.network === undefined ? 'no address' : 'no packet', 'no guest agent'];
  return {
    code: noSignOfLife,
    message: `no sign of life in ${lasted}: ${seen.join(', ')}; it may never have booted: "berth screenshot" shows its screen`,
  };
}
