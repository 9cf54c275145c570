// migration: carries a move of an instance on, one commit a step. Its record is part of the instance, so that each step is conditional on
// everything that is known of it: a crash or another leader continues at the step that is written down.
//
//   Preparing ──target has the image──▶ Copying ──target has all files──▶ Finishing ──source has nothing──▶ Done
//       │                                  │          (commit of ownership)
//       └──────cancelled, or it cannot─────┴──▶ Cancelled, Failed: the source starts it again
//
// Before the commit only the source may run the guest, after it only the target. While that is not known, none does: in Copying both are ordered
// to leave it stopped; or, in a live move, the source keeps it paused from the arrival of its memory on the target until this move has ended.

import type { Instance } from '../../api/resources/instance.ts';
import type { Migration } from '../../api/resources/migration.ts';
import { openMigration } from '../migrations/migration-state.ts';
import { abort, beginCopying, commitOwnership, finish } from '../migrations/migration-steps.ts';
import { isReady } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { lifeOf, volumesOf } from '../state/volumes.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const migration: Controller = {
  name: 'migration',
  watches: ['instance', 'allocation', 'host'],
  wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'instance') return after?.kind === 'instance' && isUnderWay(after) ? [key] : [];
    if (before?.kind === 'allocation' && after === null)
      return [keys.instance(before.consumer.project, before.consumer.name), ...holdersOf(snapshot, before.consumer.id)];
    const host = kind === 'host' ? (before ?? after) : undefined;
    return host?.kind === 'host' ? movesTo(snapshot, host.metadata.name) : [];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('instance', key);
    const { migration: current } = entry?.value.status ?? {};
    if (!entry || current === undefined || entry.value.metadata.deletionRequestedAtMs !== undefined) return emptyPlan;
    return nextStep(snapshot, entry, current, ctx);
  },
};

function isUnderWay({ status: { migration: current } }: Instance): boolean {
  return current?.step === 'Preparing' || current?.step === 'Copying' || current?.step === 'Finishing';
}

/** The instance that has a volume of which a former host has nothing left. */
function holdersOf(snapshot: Snapshot, volumeId: string): string[] {
  const [left] = snapshot.allocationsOfConsumer(volumeId);
  if (left?.value.consumer.kind !== 'volume') return [];
  const { project, name } = left.value.consumer;
  const holder = snapshot.get('volume', keys.volume(project, name))?.value.status.attachedTo?.id;
  const instance = holder === undefined ? undefined : snapshot.instanceById(holder);
  return instance ? [instance.key] : [];
}

function movesTo(snapshot: Snapshot, host: string): string[] {
  return Array.from(snapshot.allocationsOnHost(host)).flatMap(({ value: { consumer } }) => {
    if (consumer.kind !== undefined) return [];
    const key = keys.instance(consumer.project, consumer.name);
    const instance = snapshot.get('instance', key)?.value;
    return instance && isUnderWay(instance) ? [key] : [];
  });
}

function nextStep(snapshot: Snapshot, entry: Entry<Instance>, current: Migration, ctx: Context): Plan {
  switch (current.step) {
    case 'Preparing':
    case 'Copying': {
      const why = whyItCannot(snapshot, entry.value, current);
      if (why !== undefined) return abort(entry, current, { step: 'Failed', message: why }, ctx);
      const state = current.seen?.id === current.id ? current.seen.state : undefined;
      if (current.step === 'Preparing')
        return state === 'prepared' || state === 'received' ? beginCopying(entry, current, ctx) : emptyPlan;
      // One that has fallen silent since is waited for, until it is down.
      return state === 'received' && isTargetReady(snapshot, current)
        ? commitOwnership(snapshot, entry, current, ctx)
        : emptyPlan;
    }
    case 'Finishing':
      return isLeft(snapshot, entry.value, current) ? emptyPlan : finish(entry, current, ctx);
    case 'Done':
    case 'Failed':
    case 'Cancelled':
      return emptyPlan;
  }
}

function isTargetReady(snapshot: Snapshot, { to }: Migration): boolean {
  const target = snapshot.get('host', keys.host(to))?.value;
  return target !== undefined && isReady(target.status);
}

/** Undefined: it goes on. */
function whyItCannot(snapshot: Snapshot, instance: Instance, current: Migration): string | undefined {
  const { metadata, status } = instance;
  if (openMigration(instance) === undefined) return 'it was placed again meanwhile';
  const held = snapshot.get('allocation', keys.allocation(metadata.id, current.incarnation))?.value;
  if (held?.host !== current.to) return `its room on ${current.to} is gone`;
  const target = snapshot.get('host', keys.host(current.to))?.value;
  if (target === undefined) return `host ${current.to} has been removed`;
  if (target.status.down !== undefined) return `host ${current.to} is down`;
  if (status.phase === 'Failed' || status.phase === 'Exited') return `its guest is ${status.phase}`;
  if (current.kind === 'live' && !isToRun(instance)) return 'it is not to run any more';
  if (current.seen?.id === current.id && current.seen.state === 'failed')
    return current.seen.message ?? `host ${current.to} gave no reason`;
  return undefined;
}

/** A move of a running guest makes no sense for one that is to be stopped or suspended. */
function isToRun({ spec }: Instance): boolean {
  return spec.powerState === 'running';
}

/** Whether the source may still have its guest, or one of its volumes. */
function isLeft(snapshot: Snapshot, { metadata, spec }: Instance, current: Migration): boolean {
  if (snapshot.get('allocation', keys.allocation(metadata.id, current.fromIncarnation))) return true;
  return volumesOf(snapshot, { project: metadata.project, volumes: spec.volumes }).some(({ value }) => {
    const former = snapshot.get('allocation', keys.allocation(value.metadata.id, lifeOf(value.status) - 1));
    return former?.value.host === current.from;
  });
}
