// A plan of any verb as the page shows it: figures before and after, what happens to each resource, and the hash. Pure.

import type { ChangeEffect, Effects } from '../../../src/api/plans/effects.ts';
import { guestActionText, type HostPlan, type PlannedGuest, type Survival } from '../../../src/api/plans/host-plan.ts';
import type { MigrationPlan } from '../../../src/api/plans/migration-plan.ts';
import type { RebalancePlan } from '../../../src/api/plans/rebalance.ts';
import type { ResizePlan } from '../../../src/api/plans/resize-plan.ts';
import type { RolloutPlan } from '../../../src/api/plans/rollout-plan.ts';
import { copiesText, paceText } from '../../../src/api/plans/rollout-text.ts';
import type { ScalePlan } from '../../../src/api/routes/workloads.ts';
import { fieldText } from '../../../src/api/field-changes.ts';
import { amountText, classText, spanText } from '../../parts/units.ts';

export interface PlanRow {
  readonly kind: string;
  readonly project: string;
  readonly name: string;
  /** What happens to it. */
  readonly action: string;
  /** The action loses something, or cannot be done. */
  readonly bad: boolean;
  readonly before: string;
  readonly after: string;
  readonly why: string;
}

export interface ShownPlan {
  /** Applies the plan; absent: the change has no hash. */
  readonly hash?: string;
  readonly expiresAtMs?: number;
  readonly summary: string;
  readonly facts: readonly { readonly name: string; readonly before: string; readonly after: string }[];
  readonly rows: readonly PlanRow[];
  /** Why the plan cannot be applied; empty: it can. */
  readonly obstacles: readonly string[];
  readonly notes: readonly string[];
}

/** More hosts in one line are hard to read. */
const hostsMax = 20;

function amountsText(amounts: Readonly<Record<string, number>>): string {
  return Object.entries(amounts)
    .map(([resource, amount]) => amountText(resource, amount))
    .join(', ');
}

export function guestRow(guest: PlannedGuest, host: string): PlanRow {
  const { kind, project, name, action, target, reasons, amounts } = guest;
  const after: Record<PlannedGuest['action'], string> = {
    replace: target ?? 'another host',
    move: target ?? 'another host',
    restart: target ?? 'another host',
    ends: 'ended',
    stop: `${host}, stopped`,
    rests: `${host}, at rest`,
    stays: host,
    fails: 'lost',
  };
  return {
    kind,
    project,
    name,
    action: guestActionText(guest),
    bad: action === 'stays' || action === 'fails',
    before: `${host}: ${amountsText(amounts)}`,
    after: after[action],
    why: reasons.map(({ message }) => message).join('; '),
  };
}

export function survivalText({ survives, hosts, notShown, notShownCount }: Survival): string {
  if (survives) return `the fleet survives the loss of any one host (${hosts} with instances)`;
  const more = notShownCount > notShown.length ? ', …' : '';
  return `after the loss of ${notShown.join(', ')}${more}, instances may not fit elsewhere (${notShownCount} of ${hosts} hosts)`;
}

export function hostPlanShown({
  verb,
  host,
  hash,
  expiresAtMs,
  guests,
  room,
  before,
  after,
  options,
}: HostPlan): ShownPlan {
  const leave = guests.filter(({ action }) => action !== 'stays' && action !== 'rests').length;
  return {
    hash,
    expiresAtMs,
    summary:
      guests.length === 0
        ? `Host ${host} is empty.`
        : verb === 'drain'
          ? `Host ${host} is closed first; then ${leave} of ${guests.length} leave, at most ${options.movesMax} at a time.`
          : `Host ${host} is removed, with everything that exists only there.`,
    facts: [
      { name: `On host ${host}`, before: String(guests.length), after: String(guests.length - leave) },
      { name: 'N-1', before: survivalText(before), after: survivalText(after) },
      ...Object.entries(room).map(([resource, { free, capacity }]) => ({
        name: `Free ${classText(resource)} on the other hosts`,
        before: '',
        after: `${amountText(resource, free)} of ${amountText(resource, capacity)}`,
      })),
    ],
    rows: guests.map((guest) => guestRow(guest, host)),
    obstacles: [],
    notes:
      verb === 'drain'
        ? [
            `Instances that still run after ${spanText(options.deadlineMs)} ${options.atDeadline === 'stop' ? 'are stopped' : 'stay, and the host stays closed'}.`,
          ]
        : [],
  };
}

export function rebalanceShown({ hash, hosts, needMigration, inUse, moves }: RebalancePlan): ShownPlan {
  return {
    hash,
    summary:
      hosts.length === 0
        ? 'No host can be emptied by moving copies of workloads.'
        : `${moves} moves empty ${hosts.length} hosts: ${hosts.map(({ host }) => host).join(', ')}.`,
    facts: [{ name: 'Hosts in use', before: String(inUse.before), after: String(inUse.after) }],
    rows: hosts.flatMap(({ host, guests }) => guests.map((guest) => guestRow(guest, host))),
    obstacles: hosts.length === 0 ? ['there is nothing to move'] : [],
    notes: needMigration.map(
      ({ host, guests }) =>
        `Host ${host} could be emptied only by moving ${guests.length} instances; the plan leaves it.`,
    ),
  };
}

export function migrationShown({ instance, from, to, hash, copies, obstacles }: MigrationPlan): ShownPlan {
  return {
    hash,
    summary: to === undefined ? `No host can take instance ${instance}.` : `Instance ${instance} moves to host ${to}.`,
    facts: [{ name: 'Host', before: from ?? 'none', after: to ?? from ?? 'none' }],
    rows: [],
    obstacles: obstacles.map(({ message }) => message),
    notes: copies.map(({ what, gibMax }) => `Copied: ${what}${gibMax === 0 ? '' : `, at most ${gibMax} GiB`}.`),
  };
}

export function resizeShown({
  instance,
  host,
  before,
  after,
  restarts,
  hash,
  obstacles,
  wouldFit,
}: ResizePlan): ShownPlan {
  const names = Object.keys({ ...before, ...after });
  return {
    hash,
    summary: `Instance ${instance} stays on host ${host ?? '–'}${restarts ? '; it is stopped, and starts again' : ''}.`,
    facts: names.map((name) => ({
      name: classText(name),
      before: amountText(name, before[name] ?? 0),
      after: amountText(name, after[name] ?? 0),
    })),
    rows: [],
    obstacles: obstacles.map(({ message }) => message),
    notes:
      obstacles.length > 0 && wouldFit.length > 0 ? [`These hosts have enough capacity: ${wouldFit.join(', ')}.`] : [],
  };
}

export function scaleShown(
  { before, replicas, create, remove, hash }: ScalePlan,
  { project }: { readonly project: string },
): ShownPlan {
  return {
    hash,
    summary:
      create > 0
        ? `${copiesText(create)} created.`
        : remove.length > 0
          ? `${copiesText(remove.length)} removed, in this order.`
          : 'No copy is created or removed.',
    facts: [{ name: 'Desired copies', before: String(before), after: String(replicas) }],
    rows: remove.map((name) => ({
      kind: 'instance',
      ...{ project, name, action: 'removed', bad: false, before: 'a copy', after: 'removed', why: '' },
    })),
    obstacles: [],
    notes: [],
  };
}

/** Of an update or an undo. */
export function rolloutShown(plan: RolloutPlan): ShownPlan {
  const { changes, revision, replicas, replaced, kept, created, removed, hosts, copies, paused, project, hash } = plan;
  const byHost = hosts.slice(0, hostsMax).map(({ host, copies: count }) => `${host ?? 'no host yet'}: ${count}`);
  const row = { kind: 'instance', project, bad: false };
  return {
    hash,
    summary:
      replaced > 0
        ? `${copiesText(replaced)} replaced${kept > 0 ? `, ${kept} kept` : ''}: ${paceText(plan)}.`
        : created > 0
          ? `${copiesText(created)} created.`
          : removed.length > 0
            ? `${copiesText(removed.length)} removed.`
            : 'No copy is replaced.',
    facts: [
      { name: 'Revision', before: String(revision.before), after: String(revision.after) },
      ...(replicas.before === replicas.after
        ? []
        : [{ name: 'Desired copies', before: String(replicas.before), after: String(replicas.after) }]),
      ...changes.map(({ field, before, after }) => ({
        name: field,
        before: fieldText(before),
        after: fieldText(after),
      })),
    ],
    rows: [
      ...copies.map(({ instance: name, host, revision: of }) => ({
        ...{ ...row, name, action: 'replaced', before: host ?? 'no host yet', after: 'a new copy' },
        why: `it has revision ${of}`,
      })),
      ...removed.map((name) => ({
        ...{ ...row, name, action: 'removed', before: 'a copy', after: 'removed', why: 'fewer copies are wanted' },
      })),
    ],
    obstacles: changes.length === 0 ? ['nothing would change'] : [],
    notes: [
      ...(byHost.length > 0
        ? [`Copies that are replaced, by host: ${byHost.join(', ')}${hosts.length > byHost.length ? ', …' : ''}.`]
        : []),
      ...(replaced > copies.length ? [`${replaced - copies.length} more copies are replaced.`] : []),
      ...(replaced > 0 && paused ? ['The workload is paused: nothing is replaced until it is resumed.'] : []),
    ],
  };
}

export function removalShown(what: string, effects: Effects | undefined): ShownPlan {
  if (effects === undefined || effects.count === 0)
    return { summary: `Nothing uses ${what}.`, facts: [], rows: [], obstacles: [], notes: [] };
  const { affected, count, hash } = effects;
  return {
    hash,
    summary: `${what} is in use: ${count} are affected. Running guests are not stopped.`,
    facts: [],
    rows: affected.map(effectRow),
    obstacles: [],
    notes: count > affected.length ? [`${count - affected.length} more are affected.`] : [],
  };
}

function effectRow({ kind, project, name, code, message }: ChangeEffect): PlanRow {
  return { kind, project, name, action: code, bad: true, before: 'in use', after: code, why: message };
}
