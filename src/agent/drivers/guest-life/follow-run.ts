// Looks after a guest that runs: takes in what its console and its disk say, keeps its log bounded, and writes down how its run ended.
// Never starts anything, and ends only what a guest left behind that has ended by itself.

import { join } from 'node:path';
import { describeError } from '../../../base/log.ts';
import { stopForced } from '../driver.ts';
import type { BootMarks } from './boot-marks.ts';
import { guestFiles } from './guest-files.ts';
import { fallbackFrom } from './fall-back.ts';
import { watchAddress } from './ways-in/find-address.ts';
import { startConsoleKeeper } from './ways-in/console-keeper.ts';
import { followConsole, punchHole, trimmedStart } from './ways-in/console-log.ts';
import type { GuestRecord } from './guest-record.ts';
import type { Hands } from './hands.ts';
import { hostBootIdOf } from './host-boot.ts';
import { withBoot } from './records.ts';
import type { GuestEnd, Run, RunEnd, Trouble } from './hypervisor.ts';
import { watchForLife } from './sign-of-life.ts';
import type { Slot } from './slots.ts';

/** `onFallback`: the run is over, and the guest is to be started again under another accelerator. */
export interface Following {
  readonly run: Run;
  readonly onFallback: () => void;
}

export async function followRun(hands: Hands, slot: Slot, following: Following): Promise<void> {
  const { run } = following;
  slot.run = run;
  // First, so that nothing else that follows from the start comes between its steps.
  await keepConsole(hands, slot, run);
  await listen(hands, slot, run);
  run.onTrouble((trouble) => {
    if (slot.run === run) hands.slots.saveLater(slot, { reason: trouble });
  });
  run.suspension?.onChange((suspended) => {
    if (slot.run === run && (slot.record?.suspended ?? false) !== suspended) hands.slots.saveLater(slot, { suspended });
  });
  void run.guestEnded?.then((how) => letGo(hands, slot, { run, how }));
  // A caller that got no answer asks again.
  run.volumes?.onGone(() => hands.slots.notify(slot.instanceId));
  const found = (address: string, sure: boolean): void => {
    const shown = slot.record?.address;
    if (slot.run === run && shown !== address && (sure || shown === undefined))
      hands.slots.saveLater(slot, { address });
  };
  const network = slot.record?.network;
  if (run.onAddress !== undefined) run.onAddress(found);
  else if (network?.kind === 'bridge') void watchAddress(hands, slot, { run, card: network.macAddress, found });
  // Where an engine tells how the boot stands, it tells of its end, too.
  if (run.onMarks === undefined) void watchForLife(hands, slot, run);
  slot.settled = run.ended.then((end) => settle(hands, slot, following, end));
  slot.settled.catch((error: unknown) =>
    hands.log.error('cannot note the end of a guest', { instance: slot.instanceId, error: describeError(error) }),
  );
}

/** A keeper lets the agent go first: it drops nothing before the log is half as long again as the agent lets it become. */
const keeperFactor = 1.5;

/** From here on the console log stays bounded also while no agent runs. */
async function keepConsole({ hypervisor, ...hands }: Hands, slot: Slot, run: Run): Promise<void> {
  if (slot.record === undefined || hands.slots.closed || hypervisor.consoleWriter === undefined) return;
  const { maxBytes, keptBytes } = hands.consoleLimits;
  try {
    const writer = await hypervisor.consoleWriter(await hands.machineOf(slot.record), run);
    if (writer === undefined) return; // it has ended
    const path = join(await hands.directoryOf(slot.instanceId), guestFiles.console);
    await startConsoleKeeper({ path, writer, maxBytes: maxBytes * keeperFactor, keptBytes });
  } catch (error) {
    hands.log.warn('a console log is bounded only while the agent runs; its keeper needs perl', {
      instance: slot.instanceId,
      error: describeError(error),
    });
  }
}

async function listen(hands: Hands, slot: Slot, run: Run): Promise<void> {
  const { record } = slot;
  const { slots, clock } = hands;
  if (record === undefined || slots.closed) return;
  slot.console?.stop();
  const directory = await hands.directoryOf(slot.instanceId);
  let said = record.address;
  const take = (marks: BootMarks): void => {
    // What the network gave is known better than what the guest says, and what was found since better than what it said before.
    const news = record.network?.kind !== 'nat' && marks.address !== said;
    said = marks.address;
    const change: Partial<GuestRecord> = news ? { ...marks } : { ready: marks.ready };
    if (marks.ready && slot.record?.ready === false)
      slots.saveLater(slot, { ...change, phases: withBoot(slot.record, clock.nowMs()) });
    else slots.saveLater(slot, change);
  };
  let flooded = false;
  const known = { ready: record.ready, ...(record.address === undefined ? {} : { address: record.address }) };
  slot.console = followConsole({
    path: join(directory, guestFiles.console),
    clock,
    fromOffset: record.bootOffset,
    marks: run.onMarks === undefined ? known : { ready: true }, // then it is only measured
    onMarks: take,
    onPassedOver(bytes) {
      if (!flooded)
        hands.log.warn('a guest floods its console; not all of it is read for the end of its boot', {
          instance: slot.instanceId,
          bytes,
        });
      flooded = true; // once says it
    },
    onSize: (sizeBytes) => trim(hands, slot, { directory, sizeBytes }),
  });
  run.onMarks?.((marks) => {
    if (slot.run === run) take(marks);
  });
}

function trim(
  hands: Hands,
  slot: Slot,
  { directory, sizeBytes }: { readonly directory: string; readonly sizeBytes: number },
): void {
  const { clock, log } = hands;
  if (slot.record === undefined) return;
  const start = trimmedStart({ start: slot.record.consoleStart, sizeBytes }, hands.consoleLimits);
  if (start > slot.record.consoleStart) {
    // The record first: a reader must not take the hole for what the guest wrote.
    hands.slots
      .save(slot, { consoleStart: start })
      .then(() => {
        const path = join(directory, guestFiles.console);
        return hands.hypervisor.dropLogStart?.(path, start) ?? punchHole(clock, path, start);
      })
      .then((hole) => {
        if (!hole.ok)
          log.warn('cannot drop the start of a console log', { instance: slot.instanceId, error: hole.output });
      })
      .catch((error: unknown) =>
        log.warn('cannot trim a console log', { instance: slot.instanceId, error: describeError(error) }),
      );
  }
  hands.hypervisor
    .trimLogs(directory)
    .catch((error: unknown) =>
      log.warn('cannot trim what the hypervisor said', { instance: slot.instanceId, error: describeError(error) }),
    );
}

/** Ends what a guest left behind. Why that ended is noted first: afterwards only this agent would know, which may die. */
async function letGo(
  hands: Hands,
  slot: Slot,
  { run, how }: { readonly run: Run; readonly how: GuestEnd | Trouble },
): Promise<void> {
  const { slots, log } = hands;
  if (slot.run !== run || slots.closed) return; // the next agent is told, too
  const about = { instance: slot.instanceId, how: typeof how === 'string' ? how : how.code };
  try {
    await slots.save(slot, typeof how === 'string' ? { guestEnd: how } : await afterHalt(hands, slot, how));
  } catch (error) {
    log.warn('cannot note how a guest ended', { ...about, error: describeError(error) });
  }
  try {
    if (!slots.closed) await run.end();
  } catch (error) {
    log.error('what a guest left behind does not end', { ...about, error: describeError(error) });
  }
}

async function afterHalt(hands: Hands, { record }: Slot, trouble: Trouble): Promise<Partial<GuestRecord>> {
  const fallback = record === undefined ? undefined : await fallbackFrom(hands, record, trouble);
  return fallback === undefined ? { halt: trouble } : { fallback };
}

/** Writes down how a run ended. */
async function settle(hands: Hands, slot: Slot, { run, onFallback }: Following, end: RunEnd): Promise<void> {
  if (slot.run !== run || end.cause === 'detached') return;
  const directory = await hands.directoryOf(slot.instanceId);
  await slot.console?.check().catch(() => {}); // the last lines may say that the boot was over
  slot.console?.stop();
  slot.console = undefined;
  slot.run = undefined;
  if (slot.record === undefined || !slot.record.created) return; // create and remove say themselves what became of it
  if (slot.record.saved === true) return hands.slots.notify(slot.instanceId); // its memory is in a file
  const { fallback, stopRequested } = slot.record;
  if (fallback?.pending === true && !stopRequested) {
    hands.log.warn('KVM cannot run a guest; it is started again under TCG', { instance: slot.instanceId });
    return onFallback();
  }
  const verdict = await judge(hands, slot.record, { end, directory });
  hands.log.info('a guest ended', {
    instance: slot.instanceId,
    state: verdict.state,
    reason: verdict.reason?.code,
    detail: end.detail,
  });
  await hands.slots.save(slot, { ...verdict, suspended: undefined, saving: undefined });
}

/** What a guest is, now that its run is over. */
export async function judge(
  { hypervisor }: Hands,
  record: GuestRecord,
  { end, directory }: { readonly end: RunEnd; readonly directory: string },
): Promise<Pick<GuestRecord, 'state' | 'reason'>> {
  const { stopRequested, stopForcedAfterMs } = record;
  if (stopRequested)
    return { state: 'stopped', reason: stopForcedAfterMs === undefined ? undefined : stopForced(stopForcedAfterMs) };
  if (record.halt !== undefined && end.cause === 'other') return { state: 'failed', reason: record.halt };
  const cause = end.cause === 'other' ? (record.guestEnd ?? end.cause) : end.cause;
  if (cause === 'guest-shutdown') {
    return { state: 'exited', reason: { code: 'GuestShutdown', message: 'the guest powered itself off' } };
  }
  if (cause === 'guest-panic') {
    return {
      state: 'failed',
      reason: { code: 'GuestPanicked', message: 'the kernel of the guest panicked; its console says why' },
    };
  }
  if (record.hostBootId !== undefined && record.hostBootId !== (await hostBootIdOf(hypervisor))) {
    return { state: 'failed', reason: { code: 'HostRestarted', message: 'the host restarted while the guest ran' } };
  }
  if (end.verdict !== undefined) return end.verdict;
  const words = await hypervisor.lastWords(directory);
  return {
    state: 'failed',
    reason: { code: 'HypervisorExited', message: `${end.detail}${words === '' ? '' : `: ${words}`}` },
  };
}
