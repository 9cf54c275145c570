// Creates the machine that waits for a guest from another host: the files of a new guest, and a paused machine. The record says that it waits
// before the machine exists.

import type { LiveMachine } from '../../../../api/agent-protocol.ts';
import type { GuestSpec } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { makeGuestDirectory } from '../disk/disk.ts';
import { makeFiles } from '../disk/make-files.ts';
import { asDriverError, inTheWay, throwIfAborted } from '../errors.ts';
import { bornAs, guestUuid } from '../guest-files.ts';
import type { Hands } from '../hands.ts';
import { hostBootIdOf } from '../host-boot.ts';
import type { MakeCall } from '../hypervisor.ts';
import { untilConnected } from '../launch.ts';
import { isDamaged, newRecord } from '../records.ts';
import { removeNow } from '../remove.ts';
import { checkId, type Slot } from '../slots.ts';

interface Expected {
  readonly spec: GuestSpec;
  readonly machine: LiveMachine;
  readonly signal: AbortSignal;
}

export function expectGuest(hands: Hands, expected: Expected): Promise<void> {
  const { spec } = expected;
  checkId(spec.instanceId);
  const { slots } = hands;
  const slot = slots.of(spec.instanceId);
  const creating = new AbortController();
  slot.creating.add(creating);
  const signal = AbortSignal.any([expected.signal, creating.signal]);
  return slots
    .inLine(slot, async () => {
      throwIfAborted(signal, spec.instanceId);
      if (slot.record !== undefined && isDamaged(slot.record)) throw inTheWay('receive', spec.instanceId);
      if (slot.record !== undefined) await removeNow(hands, slot);
      try {
        await make(hands, slot, { ...expected, signal });
        await launch(hands, slot, { ...expected, signal });
      } catch (error) {
        throw asDriverError(error, `cannot receive ${spec.instanceId}`, hands.directory);
      }
    })
    .finally(() => slot.creating.delete(creating));
}

async function make(hands: Hands, slot: Slot, { spec, machine, signal }: Expected): Promise<void> {
  const { slots, hypervisor } = hands;
  const { instanceId, name, project } = spec;
  const directory = await hands.directoryOf(instanceId);
  const { ready, address, startedAtMs } = machine;
  slot.record = {
    ...newRecord(spec, guestUuid(instanceId, bornAs(spec))),
    ...{ incoming: true, ready },
    ...(spec.volumes === undefined ? {} : { volumes: spec.volumes.map(({ received: _file, ...volume }) => volume) }),
    ...(address === undefined ? {} : { address }),
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
  };
  await makeGuestDirectory(directory, hands.directoryMode);
  await slots.save(slot, {});
  const refusal = hypervisor.refuse?.(spec);
  if (refusal !== undefined) throw refusal;
  const { uuid } = slot.record;
  const place = { instanceId, uuid, directory, name, ...(project === undefined ? {} : { project }) };
  const network = hypervisor.network?.reserve(place);
  if (network !== undefined) await slots.save(slot, { network });
  const call: MakeCall = {
    ...{ spec, directory, ports: [], signal },
    ...(network === undefined ? {} : { network }),
    onProgress: (progress) => slots.setProgress(slot, progress),
    onImage: ({ digest, ...image }) => slots.save(slot, { imageDigest: digest, ...image }),
    async timed(_name, progress, act) {
      slots.setProgress(slot, progress);
      const result = await act();
      throwIfAborted(signal, instanceId);
      return result;
    },
    locally: (act) => locally(hands, signal, act),
  };
  await makeFiles(hands, call);
}

async function launch(hands: Hands, slot: Slot, { spec, machine, signal }: Expected): Promise<void> {
  const { slots, hypervisor, bindAddress } = hands;
  const accelerator = await hypervisor.chosenAccelerator();
  await slots.save(slot, { accelerator, launching: true, hostBootId: await hostBootIdOf(hypervisor) });
  if (slot.record === undefined) throw new DriverError('Aborted', `${spec.instanceId} was removed`);
  const record = await hands.machineOf(slot.record);
  const run = await locally(hands, signal, () =>
    hypervisor.start(record, {
      ...{ accelerator, bindAddress, incoming: true },
      onProcess: (process) => slots.save(slot, { process }),
    }),
  );
  slot.run = run;
  try {
    await untilConnected(hands, slot, run);
    throwIfAborted(signal, spec.instanceId);
    if (!(await run.alive())) throw await hypervisor.startError(record, await run.ended, bindAddress);
    await slots.save(slot, { process: run.process, launching: false });
    await run.live?.expect(machine);
  } catch (error) {
    if (!slots.closed) await run.end();
    slot.run = undefined;
    throw error;
  }
}

async function locally<Result>(hands: Hands, signal: AbortSignal, act: () => Promise<Result>): Promise<Result> {
  const leave = await hands.launching.enter(signal);
  try {
    return await act();
  } finally {
    leave();
  }
}
