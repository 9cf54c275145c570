// What operators and agents do with hosts: create, replace, delete; register and heartbeat. A host and its provider
// change in one Plan, so that the ledger never has a provider without its host.

import type { Heartbeat, Registration, Session } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import type { Host, HostSpec, HostStatus } from '../../api/resources/host.ts';
import { agentNotReady, agentStopped } from '../../api/resources/host-state.ts';
import type { Metadata } from '../../api/resources/metadata.ts';
import { schemaVersion } from '../state/upgrade.ts';
import { restoreOf } from '../state/cluster-state.ts';
import { conditionOf, isReady, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange, type NewEvent } from '../state/events.ts';
import { withState } from '../state/host-state-change.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { nextHostGeneration } from './access/host-generation.ts';
import { controlPlaneOn } from './servers/control-plane.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import { alreadyDone, type Decision } from './decision.ts';
import { assertPlausible } from './host-claims.ts';
import { agentNotWorking, assertAgentWorks, newerAgent, serverVersions } from './hosts/agent-version.ts';
import { withRoomJudged } from './hosts/host-machine.ts';
import { providerChanges } from './host-providers.ts';
import { assertHostSpec } from './host-spec.ts';
import { equalJson } from '../../base/equal-json.ts';
import { existing, replacedMetadata, type ReplaceInput } from './replace.ts';

const unseen: HostStatus = { epoch: 0, drivers: [], images: [], unknownGuests: [], conditions: [] };

/**
 * A host may be created before its agent first registers: its pool, labels and reserved amounts then apply from the
 * start. Creating a removed host again allows its agent to return.
 */
export function createHost(snapshot: Snapshot, input: CreateInput<HostSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'host');
  if (earlier) return earlier;
  assertHostSpec(input.spec);
  const key = keys.host(input.name);
  assertFree(snapshot, 'host', key, input.name);
  const removed = snapshot.get('removedHost', keys.removedHost(input.name));
  const id = ctx.newId('host');
  const host: Host = {
    kind: 'host',
    schemaVersion,
    metadata: newMetadata(id, input, ctx),
    spec: input.spec,
    status: { ...unseen, epoch: removed?.value.lastEpoch ?? 0 },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: host },
        ...(removed
          ? [{ key: removed.key, ifRevision: removed.revision, value: null }, nextHostGeneration(snapshot, input.name)]
          : []),
        ...rememberCreate(input, 'host', { key, id }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

export function replaceHost(snapshot: Snapshot, input: ReplaceInput<HostSpec>, ctx: Context): Decision {
  const key = keys.host(input.name);
  const entry = existing(snapshot, 'host', key, input.ifRevision);
  const { value } = entry;
  const specChanged = !equalJson(value.spec, input.spec);
  if (!specChanged && equalJson(value.metadata.labels, input.labels)) return alreadyDone(entry);
  assertHostSpec(input.spec);
  const replaced: Host = {
    ...value,
    metadata: replacedMetadata(value.metadata, { labels: input.labels, specChanged }),
    spec: input.spec,
  };
  const host = withState(withRoomJudged(snapshot, replaced, ctx), ctx.nowMs);
  const pausedChanged = value.spec.paused !== input.spec.paused;
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: host },
        ...providerChanges(snapshot, { before: value, host }, ctx.policy),
        ...(pausedChanged
          ? [
              eventChange(
                host,
                input.spec.paused
                  ? { reason: 'Paused', message: 'takes no new instances', host: input.name }
                  : { reason: 'Resumed', message: 'takes new instances again', host: input.name },
                ctx,
              ),
            ]
          : []),
      ],
    },
    key,
    changed: true,
  };
}

/**
 * Removes a host from the fleet; its agent is refused until an operator creates the host again. Refused while the host
 * has allocations, unless `force` says that it will never return: then its instances fail with reason HostRemoved and
 * may start elsewhere. A host with a connected agent cannot be forced out: its guests would keep running unseen, and a
 * second time elsewhere.
 */
export function deleteHost(
  snapshot: Snapshot,
  input: { readonly name: string; readonly ifRevision?: number; readonly force: boolean },
  ctx: Context,
): Decision {
  const key = keys.host(input.name);
  const entry = existing(snapshot, 'host', key, input.ifRevision);
  const consumers = [...snapshot.allocationsOnHost(input.name)].map(({ value }) => value.consumer);
  const held = consumers.length;
  const what = heldWords(consumers);
  if (held > 0 && !input.force) {
    throw new ApiError(
      'Conflict',
      `host "${input.name}" holds room for ${what}; remove them first, or, when the host will never come back, "berth host rm --force ${input.name}"`,
    );
  }
  if (held > 0 && isReady(entry.value.status)) {
    throw new ApiError(
      'Conflict',
      `host "${input.name}" is connected and runs its guests; remove the instances, or stop its agent and guests and wait until the host is lost`,
    );
  }
  const lease = snapshot.get('lease', keys.lease(input.name));
  const certificate = snapshot.get('hostCertificate', keys.hostCertificate(input.name));
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: null },
        {
          key: keys.removedHost(input.name),
          ifRevision: 0,
          value: { kind: 'removedHost', host: input.name, lastEpoch: entry.value.status.epoch, removedAtMs: ctx.nowMs },
        },
        ...snapshot
          .providersOfHost(input.name)
          .map((provider) => ({ key: provider.key, ifRevision: provider.revision, value: null })),
        ...(lease ? [{ key: lease.key, ifRevision: lease.revision, value: null }] : []),
        ...(certificate ? [{ key: certificate.key, ifRevision: certificate.revision, value: null }] : []),
        eventChange(
          entry.value,
          { type: 'Warning', reason: 'HostRemoved', message: 'removed from the fleet', host: input.name },
          ctx,
        ),
      ],
    },
    key,
    changed: true,
  };
}

/** `2 instances, 1 volume`. */
function heldWords(consumers: readonly Allocation['consumer'][]): string {
  const counts = new Map<string, number>();
  for (const { kind = 'instance' } of consumers) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return Array.from(counts, ([kind, count]) => `${count} ${kind}${count === 1 ? '' : 's'}`).join(', ');
}

interface RegisterInput {
  readonly name: string;
  readonly registration: Registration;
  /** What the agent has shown; absent where no certificate can be had. */
  readonly credential?: Host['status']['credential'];
}

/**
 * An agent begins a session. The same session again gets the same epoch; a new one ends the sessions before it. Throws
 * `Conflict` when the host belongs to another machine, or to an agent with another data directory.
 */
export function registerHost(snapshot: Snapshot, input: RegisterInput, ctx: Context): Decision {
  const { name, registration } = input;
  const key = keys.host(name);
  const entry = snapshot.get('host', key);
  const removedKey = keys.removedHost(name);
  if (!entry) assertNotRemoved(snapshot, name);
  if (entry && entry.value.status.machineId !== undefined && entry.value.status.machineId !== registration.machineId) {
    throw new ApiError(
      'Conflict',
      `host "${name}" is registered by another machine; give this one another name, or delete the host when its machine was replaced`,
      { field: 'machineId' },
    );
  }
  if (entry?.value.status.outside)
    throw new ApiError(
      'Conflict',
      `host "${name}" comes from inventory "${entry.value.status.outside.inventory}" and has no agent; give this one another name`,
      { field: 'name' },
    );
  if (entry) assertSameAgent(entry.value, registration.agentId);
  if (entry?.value.status.session === registration.session) return alreadyDone(entry);
  assertPlausible(registration);
  assertAgentWorks(name, registration.agentVersion, serverVersions(snapshot));
  const warning = newerAgent(name, registration.agentVersion);
  const registered = registeredHost(snapshot, entry, input, ctx);
  const host = withState(withRoomJudged(snapshot, registered, ctx), ctx.nowMs);
  return {
    plan: {
      changes: [
        { key, ifRevision: entry?.revision ?? 0, value: host },
        ...providerChanges(snapshot, { before: entry?.value, host }, ctx.policy),
        leaseChange(snapshot, name, host.status.epoch, ctx),
        eventChange(
          host,
          {
            reason: entry?.value.status.session === undefined ? 'HostJoined' : 'AgentStarted',
            message: `its agent registered (session ${host.status.epoch})`,
            host: name,
          },
          ctx,
        ),
        ...(warning === undefined
          ? []
          : [eventChange(host, { type: 'Warning', reason: 'AgentIsNewer', message: warning, host: name }, ctx)]),
      ],
      // The host must not be removed by another control plane at the same moment.
      ...(entry ? {} : { conditions: [{ key: removedKey, ifRevision: 0 }] }),
    },
    key,
    changed: true,
  };
}

/** Throws `Conflict`, which ends an agent: its host has been removed, and its token opens nothing. */
export function assertNotRemoved(snapshot: Pick<Snapshot, 'get'>, name: string): void {
  if (!snapshot.get('removedHost', keys.removedHost(name))) return;
  throw new ApiError(
    'Conflict',
    `host "${name}" has been removed from the fleet; "berth host create ${name}" allows it to return`,
  );
}

/**
 * Guests outlive their agent, so silence does not release a host to another data directory: the guests of the first
 * would keep running unseen, and the second agent would start them again. Only an operator can know that they are gone.
 */
function assertSameAgent({ metadata: { name }, status }: Host, agentId: string): void {
  const known = status.agentId; // absent: its last session was with a Berth that did not record it
  if (known === undefined || known === agentId) return;
  const wayOut = isReady(status)
    ? `which is heard; stop one of the two: this one needs a name and a token of its own to run beside it`
    : `which is silent, but its guests may still run; start the agent with the data directory that it had, or, when that and its guests are gone for good, "berth host rm --force ${name}" and "berth host create ${name}" make way for this one`;
  throw new ApiError(
    'Conflict',
    `host "${name}" belongs to ${known}, and this is ${agentId}, an agent with another data directory. It belongs to the one ${wayOut}`,
    { field: 'agentId' },
  );
}

function registeredHost(
  snapshot: Snapshot,
  entry: Entry<Host> | undefined,
  { name, registration, credential }: RegisterInput,
  ctx: Context,
): Host {
  const controlPlane = controlPlaneOn(snapshot, registration.machineId);
  const before = entry?.value.status ?? unseen;
  const metadata: Metadata = entry?.value.metadata ?? {
    ...newMetadata(ctx.newId('host'), { project: '', name, labels: registration.labels, spec: undefined }, ctx),
  };
  return {
    kind: 'host',
    schemaVersion,
    metadata,
    spec: entry?.value.spec ?? { paused: false, allocationRatios: {} },
    status: {
      machineId: registration.machineId,
      agentId: registration.agentId,
      bootId: registration.bootId,
      ...(registration.address === undefined ? {} : { address: registration.address }),
      ...(registration.maintains === true ? { maintains: true } : {}),
      ...(registration.moveKey === undefined ? {} : { moveKey: registration.moveKey }),
      ...(registration.takesMoves === true ? { takesMoves: true } : {}),
      ...(registration.watchdogMs === undefined
        ? {}
        : { watchdogMs: registration.watchdogMs, leaseMs: ctx.policy.offlineAfterMs }),
      epoch: before.epoch + 1,
      session: registration.session,
      architecture: registration.architecture,
      capacity: registration.capacity,
      reserved: registration.reserved,
      ...(registration.measured ? { measured: registration.measured } : {}),
      ...(registration.diskId === undefined ? {} : { diskId: registration.diskId }),
      ...(registration.traits ? { traits: registration.traits } : {}),
      ...(registration.providers ? { providers: registration.providers } : {}),
      ...(controlPlane ? { controlPlane } : {}),
      drivers: registration.drivers,
      images: registration.images,
      unknownGuests: [],
      agentVersion: registration.agentVersion,
      ...(credential === undefined ? {} : { credential }),
      registeredAtMs: before.registeredAtMs ?? ctx.nowMs,
      ...(before.state ? { state: before.state } : {}),
      conditions: withConditions(
        before.conditions.filter(({ type }) => type !== 'MassLoss'),
        [{ type: 'Ready', status: 'True', reason: 'Registered', message: 'its agent has registered' }],
        ctx.nowMs,
      ),
    },
  };
}

/** The response to a registration. */
export function sessionOf(host: Host, ctx: Context): Session {
  return {
    hostId: host.metadata.id,
    epoch: host.status.epoch,
    heartbeatMs: ctx.policy.heartbeatMs,
    offlineAfterMs: ctx.policy.offlineAfterMs,
    ...(isOfFirstRelease(host) ? {} : { takesUsage: true }),
  };
}

/** Agents of 0.1.0 refuse a session with fields that they do not know; later ones ignore these, and say what they have measured. */
function isOfFirstRelease({ status: { agentVersion = '', measured } }: Host): boolean {
  return agentVersion.startsWith('0.1.') && measured === undefined;
}

/**
 * The host, if `epoch` is that of its current session; else throws `StaleEpoch`, or `Unavailable` when this view is the
 * older one.
 */
export function hostInSession(snapshot: Snapshot, name: string, epoch: number): Entry<Host> {
  const host = existing(snapshot, 'host', keys.host(name));
  if (epoch > host.value.status.epoch) throw new ApiError('Unavailable', notHeardOf(name, epoch));
  if (host.value.status.epoch !== epoch) {
    throw new ApiError(
      'StaleEpoch',
      `session ${epoch} of host "${name}" is over; session ${host.value.status.epoch} has begun`,
      { field: 'epoch' },
    );
  }
  return host;
}

/** For a session that began at another control plane a moment ago. */
export function notHeardOf(host: string, epoch: number): string {
  return `this control plane has not heard of session ${epoch} of host "${host}" yet; try again`;
}

export function heartbeat(
  snapshot: Snapshot,
  input: { readonly name: string; readonly heartbeat: Heartbeat },
  ctx: Context,
): Decision {
  const host = hostInSession(snapshot, input.name, input.heartbeat.epoch);
  const { drivers, images, unknownGuests, unknownVolumes, guestsTold, maintenance } = input.heartbeat;
  // Of a session that began with a server of an earlier version.
  const skewed = agentNotWorking(input.name, host.value.status.agentVersion, serverVersions(snapshot));
  const told = saidReady(host.value, input.heartbeat.notReady ?? skewed, ctx);
  const { unknownVolumes: volumesBefore = [], ...status } = host.value.status;
  const volumes = unknownVolumes ?? volumesBefore;
  const next: HostStatus = {
    ...status,
    ...(volumes.length > 0 ? { unknownVolumes: volumes } : {}),
    drivers: drivers ?? status.drivers,
    images: images ?? status.images,
    unknownGuests: unknownGuests ?? status.unknownGuests,
    // Needed only after a restore; otherwise each host would be written once more.
    ...(guestsTold === undefined || !restoreOf(snapshot) ? {} : { guestsTold }),
    ...(maintenance === undefined ? {} : { maintenance }),
    ...(told ? { conditions: told.conditions } : {}),
  };
  const changed = !equalJson(host.value.status, next);
  const value = changed ? withState({ ...host.value, status: next }, ctx.nowMs) : host.value;
  return {
    plan: {
      changes: [
        leaseChange(snapshot, input.name, input.heartbeat.epoch, ctx),
        ...(changed ? [{ key: host.key, ifRevision: host.revision, value }] : []),
        ...(told ? [eventChange(host.value, { ...told.news, host: input.name }, ctx)] : []),
      ],
      // The session must still be the current one when this is written.
      ...(changed ? {} : { conditions: [{ key: host.key, ifRevision: host.revision }] }),
    },
    key: host.key,
    changed: true,
  };
}

/** What the agent says of its readiness, where that is news. One that has said that it stops says no more in this session. */
function saidReady(
  { status }: Host,
  said: Heartbeat['notReady'],
  ctx: Context,
): { readonly conditions: HostStatus['conditions']; readonly news: NewEvent } | undefined {
  const reason = conditionOf(status.conditions, 'Ready')?.reason;
  if (reason === agentStopped || (said === undefined && reason !== agentNotReady)) return undefined;
  const now = said ? (said.stopping ? agentStopped : agentNotReady) : 'AgentReady';
  if (now === reason) return undefined;
  const message = said?.message ?? 'its agent says that it is ready again';
  const ready = { type: 'Ready', status: said ? 'False' : 'True', reason: now, message } as const;
  return {
    conditions: withConditions(status.conditions, [ready], ctx.nowMs),
    news: { type: said ? 'Warning' : 'Normal', reason: now, message },
  };
}

function leaseChange(snapshot: Snapshot, host: string, epoch: number, ctx: Context): Change {
  const key = keys.lease(host);
  return {
    key,
    ifRevision: snapshot.get('lease', key)?.revision ?? 0,
    value: { kind: 'lease', host, epoch, renewedAtMs: ctx.nowMs },
  };
}
