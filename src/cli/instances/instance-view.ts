// How an instance is displayed: its row in `berth ps`, what it waits for, and the steps of its boot.

import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import type { Condition } from '../../api/resources/metadata.ts';
import { type Colours, type Column, longestReason } from '../print/output.ts';
import { age, port } from '../options/units.ts';

export function conditionOf(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}

export function instanceColumns(nowMs: number, options: { project?: boolean } = {}): Column<Instance>[] {
  return [
    ...(options.project ? [{ header: 'PROJECT', value: ({ metadata }: Instance) => metadata.project }] : []),
    { header: 'NAME', importance: 'major', value: ({ metadata }) => metadata.name },
    { header: 'PHASE', importance: 'major', value: ({ status }) => status.phase, paint: paintPhase },
    { header: 'READY', value: (instance) => (isReady(instance) ? 'yes' : 'no') },
    { header: 'HOST', value: ({ status }) => status.host ?? '' },
    { header: 'ADDRESS', value: (instance) => addressOf(instance) ?? '' },
    { header: 'PORTS', value: ({ status, spec }) => (status.guest?.ports ?? spec.ports).map(port).join(',') },
    { header: 'IMAGE', importance: 'minor', value: ({ spec }) => spec.image },
    {
      header: 'RESTARTS',
      importance: 'minor',
      usual: '0',
      value: ({ status }) => String(status.restartCount),
      right: true,
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'REASON', importance: 'major', longest: longestReason, value: reasonOf },
  ];
}

export function paintPhase(cell: string, { status }: Instance, colours: Colours): string {
  switch (status.phase) {
    case 'Running':
      return status.guest?.ready ? colours.green(cell) : colours.cyan(cell);
    case 'Failed':
      return colours.red(cell);
    case 'Pending':
    case 'Scheduled':
    case 'Starting':
      return colours.yellow(cell);
    default:
      return colours.dim(cell);
  }
}

export function isReady({ status }: Instance): boolean {
  return status.phase === 'Running' && status.guest?.ready === true;
}

/** Why it is not ready, or what is wrong with it; empty when there is nothing to say. */
export function reasonOf(instance: Instance): string {
  const { status } = instance;
  switch (status.phase) {
    case 'Pending':
      return told(conditionOf(status.conditions, 'Scheduled'), false);
    case 'Scheduled':
    case 'Starting':
      return overdueOf(instance) ?? status.guest?.progress ?? '';
    case 'Running':
      if (status.guest?.reason !== undefined) return told(conditionOf(status.conditions, 'Running'), true);
      if (instance.spec.powerState === 'suspended') return status.guest?.progress ?? 'to be suspended';
      return status.guest?.ready ? '' : (status.guest?.failing?.message ?? 'booting');
    case 'Suspended':
      if (instance.spec.powerState !== 'suspended') return 'to be resumed';
      if (status.guest?.saved === true) return 'its memory is on disk';
      return instance.spec.suspendTo === 'disk' ? (status.guest?.progress ?? 'its memory is being saved') : '';
    case 'Stopped':
      // It should run, and waits for room on the host that has its disk.
      return isToBeOn(instance.spec) ? told(conditionOf(status.conditions, 'Scheduled'), false) : '';
    case 'Exited':
    case 'Failed':
      return told(conditionOf(status.conditions, 'Running'), true);
    default:
      return overdueOf(instance) ?? '';
  }
}

/** It stays in a state on the way to another for longer than it should. */
function overdueOf({ status }: Instance): string | undefined {
  const condition = conditionOf(status.conditions, 'Progressing');
  return condition?.status === 'False' ? told(condition, true) : undefined;
}

function told(condition: Condition | undefined, withCode: boolean): string {
  if (!condition) return '';
  return withCode && condition.reason !== ''
    ? `${condition.reason}: ${condition.message}`
    : condition.message || condition.reason;
}

export interface Step {
  readonly name: string;
  readonly durationMs: number;
}

/**
 * Duration of each step from the request until the guest was ready: placement, the driver's phases, and the time
 * between them.
 */
export function stepsOf({ metadata, status }: Instance): { steps: Step[]; totalMs: number | undefined } {
  const steps: Step[] = [];
  if (status.scheduledAtMs !== undefined)
    steps.push({ name: 'place', durationMs: status.scheduledAtMs - metadata.createdAtMs });
  for (const { name, durationMs } of status.guest?.phases ?? []) steps.push({ name, durationMs });
  const endMs = status.readyAtMs;
  // A restarted instance was created long before: its time to ready means nothing.
  const totalMs = endMs === undefined || status.restartCount > 0 ? undefined : endMs - metadata.createdAtMs;
  return { steps, totalMs };
}

/** `127.0.0.1:8080 on h1 -> 80/tcp` for each published port. */
export function portLines({ status }: Instance): string[] {
  return (status.guest?.ports ?? []).map(({ hostAddress, hostPort, guestPort, protocol }) => {
    const where = hostAddress === undefined ? hostPort : `${hostAddress}:${hostPort}`;
    return `${where} on ${status.host ?? 'its host'} -> ${guestPort}/${protocol}`;
  });
}

/**
 * QEMU's user network gives this address to every guest; it is unreachable from outside, so such guests are reached by
 * their ports.
 */
export const userNetworkAddress = '10.0.2.15';

/** The address of an existing guest; an ended one has none, even if it reported one. */
export function currentAddress({ phase, guest }: Instance['status']): string | undefined {
  return phase === 'Stopped' || phase === 'Exited' || phase === 'Failed' ? undefined : guest?.address;
}

/** Where the guest can be reached; the API shows the other address as well. */
export function addressOf({ status }: Instance): string | undefined {
  const address = currentAddress(status);
  return address === userNetworkAddress ? undefined : address;
}
