// Makes a guest: record, ports, what it consists of, process, in this order. Repeated after an interruption it goes on with what is
// there; it never replaces what a guest has written to.

import type { GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { describeError } from '../../../base/log.ts';
import { bornAs, guestUuid } from './guest-files.ts';
import { makeGuestDirectory } from './disk/disk.ts';
import { asDriverError, inTheWay, throwIfAborted } from './errors.ts';
import type { Hands } from './hands.ts';
import type { Hypervisor, MakeCall } from './hypervisor.ts';
import { launch } from './launch.ts';
import { makeFiles } from './disk/make-files.ts';
import { isDamaged, newRecord, phase } from './records.ts';
import { removeNow } from './remove.ts';
import { checkId, type Slot } from './slots.ts';

export function createGuest(hands: Hands, spec: GuestSpec, signal: AbortSignal): Promise<void> {
  checkId(spec.instanceId);
  const { slots } = hands;
  const slot = slots.of(spec.instanceId);
  const creating = new AbortController();
  slot.creating.add(creating);
  const either = AbortSignal.any([signal, creating.signal]);
  return slots
    .inLine(slot, async () => {
      throwIfAborted(either, spec.instanceId);
      if (slot.record !== undefined) {
        if (isDamaged(slot.record)) throw inTheWay('create', spec.instanceId);
        if (slot.record.incarnation > spec.incarnation && !slot.record.removing) {
          throw new DriverError(
            'Internal',
            `cannot create incarnation ${spec.incarnation} of ${spec.instanceId}: incarnation ${slot.record.incarnation} is here already`,
          );
        }
        if (slot.record.incarnation !== spec.incarnation || slot.record.removing) await removeNow(hands, slot);
        else if (slot.record.created) return; // create twice is once, also when the guest has ended since
      }
      try {
        await build(hands, slot, { spec, signal: either });
      } catch (error) {
        throw await giveUp(hands, slot, { spec, signal: either, error });
      } finally {
        slots.setProgress(slot, undefined);
      }
    })
    .finally(() => slot.creating.delete(creating));
}

async function build(
  hands: Hands,
  slot: Slot,
  { spec, signal }: { readonly spec: GuestSpec; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, slots, hypervisor } = hands;
  const directory = await hands.directoryOf(spec.instanceId);
  slot.record = {
    ...newRecord(spec, guestUuid(spec.instanceId, bornAs(spec))),
    ...(hypervisor.volumes && spec.volumes !== undefined ? { volumes: [...spec.volumes] } : {}),
  };
  await makeGuestDirectory(directory, hands.directoryMode);
  await slots.save(slot, {});
  const refusal = refusalOf(hypervisor, spec);
  if (refusal !== undefined) throw refusal;
  await slots.save(slot, { ports: await hands.ports.reserve(spec.instanceId, spec.ports) });
  const { instanceId, name, project } = spec;
  const place = { instanceId, uuid: slot.record.uuid, directory, name, ...(project === undefined ? {} : { project }) };
  const network = hypervisor.network?.reserve(place);
  if (network !== undefined) await slots.save(slot, { network });

  const timed = async <Result>(name: string, progress: string, act: () => Promise<Result>): Promise<Result> => {
    slots.setProgress(slot, progress);
    const startedAtMs = clock.nowMs();
    const result = await act();
    throwIfAborted(signal, spec.instanceId);
    await slots.save(slot, { phases: [...(slot.record?.phases ?? []), phase(name, startedAtMs, clock.nowMs())] });
    return result;
  };

  const locally = async <Result>(act: () => Promise<Result>): Promise<Result> => {
    const leave = await hands.launching.enter(signal);
    try {
      throwIfAborted(signal, spec.instanceId);
      return await act();
    } finally {
      leave();
    }
  };

  const call: MakeCall = {
    spec,
    directory,
    ports: slot.record.ports,
    ...(network === undefined ? {} : { network }),
    signal,
    timed,
    locally,
    onProgress: (progress) => slots.setProgress(slot, progress),
    onImage: ({ digest, ...image }) => slots.save(slot, { imageDigest: digest, ...image }),
  };
  await (hypervisor.make === undefined ? makeFiles(hands, call) : hypervisor.make(call));
  slots.setProgress(slot, 'starting');
  await locally(() => launch(hands, slot, { wanted: spec.ports, signal }));
}

function refusalOf(hypervisor: Hypervisor, spec: GuestSpec): DriverError | undefined {
  const refuse = (what: string): DriverError =>
    new DriverError(
      'NotPossible',
      `cannot create ${spec.instanceId}: guests of driver "${hypervisor.name}" ${what}, or choose another driver`,
    );
  if (spec.volumes !== undefined && !hypervisor.volumes) return refuse('cannot have volumes; leave them away');
  if (spec.runDisk !== undefined && !hypervisor.runs) return refuse('cannot run a program; leave "run" away');
  return hypervisor.refuse?.(spec);
}

/** After a failed create nothing runs and the guest says why; what can be used again by a next try is kept. */
async function giveUp(
  { slots, ports, log, directory, hypervisor }: Hands,
  slot: Slot,
  { spec, signal, error }: { readonly spec: GuestSpec; readonly signal: AbortSignal; readonly error: unknown },
): Promise<DriverError> {
  const told = signal.aborted
    ? new DriverError('Aborted', `the creation of ${spec.instanceId} was given up`, error)
    : asDriverError(error, `cannot create ${spec.instanceId}`, directory);
  if (slots.closed) return told; // as if the agent had died here: the next one goes on
  ports.release(slot.instanceId);
  await hypervisor.network
    ?.release(slot.instanceId)
    .catch((failure: unknown) =>
      log.warn('cannot take a guest from the network', { instance: slot.instanceId, error: describeError(failure) }),
    );
  log.warn('cannot create a guest', { instance: slot.instanceId, code: told.code, error: told.message });
  await slots
    .save(slot, { state: 'failed', reason: { code: told.code, message: told.message } })
    .catch((failure: unknown) =>
      log.warn('cannot write the record of a guest', { instance: slot.instanceId, error: describeError(failure) }),
    );
  return told;
}
