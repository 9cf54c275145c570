// Live moves of guests. The record on the source says that the guest was handed over before this can happen. The record on the target says that
// the machine waits until everything has arrived. An agent that restarts ends waiting machines.

import { join } from 'node:path';
import { describeError } from '../../../../base/log.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { connectSocket } from '../../../host/connect-socket.ts';
import type { GuestLiveMigration, LiveSend } from '../../driver.ts';
import { asDriverError, noSuchGuest } from '../errors.ts';
import { followRun } from '../follow-run.ts';
import type { GuestRecord } from '../guest-record.ts';
import type { Hands } from '../hands.ts';
import type { Hypervisor, RunLive } from '../hypervisor.ts';
import { launchLater } from '../launch.ts';
import { checkId, type Slot } from '../slots.ts';
import { expectGuest } from './expect-guest.ts';

export function liveMigrationOf(hands: Hands, moves: NonNullable<Hypervisor['live']>): GuestLiveMigration {
  const { slots } = hands;
  return {
    kind: () => moves.kind(),
    async describe(instanceId) {
      const { record, live } = running(hands, 'move', instanceId);
      const { ready, address, startedAtMs, volumes = [] } = record;
      const { disks, ...parts } = await live.parts();
      return {
        ...parts,
        disks: disks.map((disk) => {
          const label = volumes.find(({ volumeId }) => volumeId === disk.name)?.name;
          return label === undefined ? disk : { ...disk, label };
        }),
        ready,
        ...(address === undefined ? {} : { address }),
        ...(startedAtMs === undefined ? {} : { startedAtMs }),
      };
    },
    expect: (spec, machine, signal) => expectGuest(hands, { spec, machine, signal }),
    async connect(instanceId, name) {
      checkId(instanceId);
      const record = slots.get(instanceId)?.record;
      if (record?.incoming !== true) throw noSuchGuest('connect to', instanceId);
      const machine = await hands.machineOf(record);
      return connectSocket(join(machine.directory, await moves.socketOf(machine, name)));
    },
    async received(instanceId, signal) {
      const slot = slots.get(instanceId);
      const run = slot?.run;
      if (slot?.record?.incoming !== true || run?.live === undefined) throw noSuchGuest('receive', instanceId);
      const ended = run.ended.then(({ detail }) => {
        throw new DriverError('HypervisorFailed', `the machine that waits for ${instanceId} has ended: ${detail}`);
      });
      await Promise.race([run.live.received(signal), ended]);
      await slots.save(slot, { incoming: undefined, created: true, state: 'running', suspended: true });
      await followRun(hands, slot, { run, onFallback: () => launchLater(hands, slot) });
    },
    send: (instanceId, call, signal) => send(hands, instanceId, call, signal),
    async sent(instanceId, id) {
      checkId(instanceId);
      const { record, run } = slots.get(instanceId) ?? {};
      return record?.handedOver?.id === id && (await run?.live?.isSent()) === true;
    },
    async takeBack(instanceId) {
      checkId(instanceId);
      const slot = slots.get(instanceId);
      if (slot?.record === undefined) throw noSuchGuest('take back', instanceId);
      await slots.inLine(slot, async () => {
        if (slot.record?.handedOver === undefined) return;
        if (slot.run?.live === undefined)
          throw new DriverError('NotPossible', `cannot take ${instanceId} back: it does not run`);
        await slot.run.live.settle('over');
        await slots.save(slot, { handedOver: undefined });
      });
    },
  };
}

/** Not serialized with other operations: an operation that ends the guest must not wait for this one, and makes it fail. */
async function send(hands: Hands, instanceId: string, call: LiveSend, signal: AbortSignal): Promise<number> {
  const { slot, live } = running(hands, 'send', instanceId);
  const { slots, log } = hands;
  const onHandOver = (): Promise<void> => slots.save(slot, { handedOver: { ...call.move } });
  try {
    return await live.send({ ...call, onHandOver }, signal);
  } catch (error) {
    if (slots.closed) throw error; // the next agent process handles it
    try {
      if (await live.settle('failed')) await slots.save(slot, { handedOver: undefined });
    } catch (failure) {
      log.warn('cannot see what became of a guest that was sent', {
        instance: instanceId,
        error: describeError(failure),
      });
    }
    throw asDriverError(error, `cannot send ${instanceId}`, hands.directory);
  }
}

interface Running {
  readonly slot: Slot;
  readonly record: GuestRecord;
  readonly live: RunLive;
}

function running({ slots }: Hands, verb: string, instanceId: string): Running {
  checkId(instanceId);
  const slot = slots.get(instanceId);
  if (slot?.record === undefined) throw noSuchGuest(verb, instanceId);
  const { record, run } = slot;
  if (record.handedOver !== undefined)
    throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it was handed over already`);
  if (run?.live === undefined || record.state !== 'running' || record.suspended === true || record.incoming === true)
    throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it does not run`);
  return { slot, record, live: run.live };
}
