// The museum's pieces: real bugs of systems like this one, put back in. Each is a text of a file of src/ that stands there exactly once,
// and what stands there instead while the bug is in. The simulator must find every one, as the invariant that it breaks.

import type { Narrowing } from '../batch/narrowing.ts';
import type { Planted } from './plant.ts';

export interface PlantedBug extends Planted {
  /** What happened, and to whom. */
  readonly reenacts: string;
  /** Number of the invariant in docs/ARCHITECTURE.md; 0: one without a number. */
  readonly invariant: number;
  /** Of a bug that shows only in rare company: the misfortunes that are to happen often in every run. */
  readonly with?: readonly string[];
  /** How small the runs are; default: `museumWorld`. */
  readonly world?: Narrowing;
  /**
   * It shows in few runs, and has the larger budget. `hint` is a seed that has caught it; `--quick` tries it first. Runs change with
   * the code, so it may not catch it now, and nothing rests on it.
   */
  readonly rare?: { readonly hint: number };
}

/** Of each bug: runs from the first seed on, at most. A common one shows in one of twenty or more, a rare one in one of a hundred or more. */
export const budgets = { common: 100, rare: 1000 } as const;

/** Small and short: a run takes half the time, and what collides in a fleet collides sooner where there is little room. */
export const museumWorld: Narrowing = { hosts: 3, tenants: 3, stormMs: 30_000 };
/** Of bugs that small worlds do not show: as the seed has it. */
const asDrawn: Narrowing = {};

export const plantedBugs: readonly PlantedBug[] = [
  // ── room ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'drop-ledger-condition',
    reenacts:
      'two claims decided on one view are both committed: Placement without generations; CloudStack CVE-2025-69233',
    invariant: 1,
    world: asDrawn,
    file: 'server/commit.ts',
    find: 'if (restsOn[at++] === 0 && !isNewEvent(change)) yield change;',
    replace: "if (restsOn[at++] === 0 && !isNewEvent(change) && !change.key.startsWith('providers/')) yield change;",
  },
  {
    name: 'two-predicates',
    reenacts: 'one path asks for room by a rule of its own: Nomad #9506, Nova CVE-2017-17051',
    invariant: 1,
    file: 'core/controllers/power-on.ts',
    find: 'const verdict = assign(tree, { ...request, amounts: plainOf(status.assigned ?? {}, request.portions) });',
    replace:
      'const verdict = assign(tree.map(({ provider }) => ({ provider, used: new Map() })), { ...request, amounts: plainOf(status.assigned ?? {}, request.portions) });',
  },
  {
    name: 'reserve-forgotten',
    reenacts: 'what an operator keeps back is given away: the class of Nova CVE-2026-46448, a path without the claim',
    invariant: 1,
    file: 'core/ledger/ledger.ts',
    find: 'Math.floor((inventory.total - inventory.reserved) * inventory.allocationRatio)',
    replace: 'Math.floor(inventory.total * inventory.allocationRatio)',
  },
  {
    name: 'release-before-gone',
    reenacts: 'room is free when the end is asked for, not when the guest is gone: Nova 1794996, local delete',
    invariant: 5,
    file: 'core/operations/instance.ts',
    find: "return requestDeletion({ ...entry, value: deleting }, 'deletion requested', ctx);",
    replace:
      "const requested = requestDeletion({ ...entry, value: deleting }, 'deletion requested', ctx);\n  const released = snapshot.allocationsOfConsumer(value.metadata.id).map(({ key: held, revision }) => ({ key: held, ifRevision: revision, value: null }));\n  return { ...requested, plan: { changes: [...requested.plan.changes, ...released] } };",
  },
  {
    name: 'release-twice',
    reenacts:
      'a release at the end of a run gives back the disk too, and the removal gives it back again: Nova 1848343',
    invariant: 5,
    file: 'core/ledger/ledger.ts',
    find: 'amounts[providerId] = disk === undefined ? {} : { DISK_GB: disk };',
    replace: 'amounts[providerId] = {};',
  },
  {
    name: 'claim-leaked-by-restart',
    reenacts: 'an older life is never reported gone, and its room stays held: Orchard #381, Nova 1679750',
    invariant: 5,
    rare: { hint: 25 },
    file: 'agent/guests/settle.ts',
    find: "if (canTell(parts, entry)) parts.notes.settle(assignment, 'absent');",
    replace: "if (assignment.incarnation > 1_000 && canTell(parts, entry)) parts.notes.settle(assignment, 'absent');",
  },
  {
    name: 'claim-leaked-while-building',
    reenacts: 'an instance that is deleted while it is built is never cleared away: Nova 1679750',
    invariant: 3,
    file: 'agent/guests/plan.ts',
    find: "absent:    { nothing: 'report-absent',  older: 'remove', preparing: 'remove',",
    replace: "absent:    { nothing: 'report-absent',  older: 'remove', preparing: 'none',",
  },
  {
    name: 'task-room-leaked',
    reenacts: 'room that is taken over is not given back by who held it: Nova 1896463, the other way round',
    invariant: 5,
    file: 'core/controllers/placement.ts',
    find: '...releaseAllOf(snapshot, task.value.metadata.id),',
    replace: '',
  },
  {
    name: 'deleted-with-guest',
    reenacts: 'the record goes while its guest is still there: Nova, servers deleted under a host that was down',
    invariant: 3,
    rare: { hint: 18 },
    file: 'core/controllers/garbage.ts',
    find: 'if (snapshot.allocationsOfConsumer(instance.value.metadata.id).length > 0) return emptyPlan;',
    replace: '',
  },

  // ── commits ───────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'ack-before-commit',
    reenacts: 'told before it is durable: etcd #14370, RabbitMQ 2014',
    invariant: 3,
    file: 'server/commit.ts',
    find: 'epochAt: this.#epochAt(),\n      told,\n    });',
    replace:
      'epochAt: this.#epochAt(),\n      told: () => {},\n    });\n    told({ ok: true, revision: this.#cache.revision });',
  },
  {
    name: 'placed-twice',
    reenacts: 'no condition on the instance when it is bound: Kubernetes #59848, Nova 1713783',
    invariant: 7,
    file: 'server/commit.ts',
    find: 'if (restsOn[at++] === 0 && !isNewEvent(change)) yield change;',
    replace: "if (restsOn[at++] === 0 && !isNewEvent(change) && !change.key.startsWith('instances/')) yield change;",
  },
  {
    name: 'bound-to-lost-host',
    reenacts:
      'the host is not looked at again when the binding is written: Nomad plan-rejection, the other way round (#27497)',
    invariant: 0,
    world: asDrawn,
    rare: { hint: 285 },
    file: 'core/controllers/bind.ts',
    find: 'conditions: Array.from(new Set(bindings.map(({ placed }) => keys.host(placed.host))), (key) => ({',
    replace: 'conditions: Array.from(new Set<string>(), (key) => ({',
  },
  {
    name: 'wrong-revision',
    reenacts:
      'a Plan that rests on one just made durable has no condition any more and overwrites another control plane',
    invariant: 7,
    with: ['store-slow', 'network-duplicate', 'create-burst', 'host-rules'],
    rare: { hint: 20 },
    file: 'server/commit.ts',
    find: 'if (change) more.push({ key: change.key, ifRevision: change.value === null ? 0 : revision });',
    replace: '',
  },
  {
    name: 'unknown-outcome-is-success',
    reenacts: 'no answer is taken for yes: FoundationDB commit_unknown_result',
    invariant: 6,
    file: 'server/commit.ts',
    find: "this.#fail(group, error);\n      return 'failed';",
    replace:
      "if (error instanceof StoreError && error.outcome === 'unknown') return { ok: true, revision: this.#cache.revision + 1 };\n      this.#fail(group, error);\n      return 'failed';",
  },
  {
    name: 'unknown-outcome-is-failure',
    reenacts: 'no answer is taken for no, for good: FoundationDB commit_unknown_result, the other way round',
    invariant: 3,
    file: 'server/commit.ts',
    find: "return new ApiError(\n    'Unavailable',",
    replace: "return new ApiError(\n    unknown ? 'AlreadyExists' : 'Unavailable',",
  },

  // ── intake ────────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'key-not-in-plan',
    reenacts:
      'the idempotency key is not conditional in the Plan that makes the instance: Cirrus-style retries made two',
    invariant: 4,
    with: ['network-answerLost', 'store-slow', 'network-duplicate'],
    file: 'server/commit.ts',
    find: 'if (restsOn[at++] === 0 && !isNewEvent(change)) yield change;',
    replace: "if (restsOn[at++] === 0 && !isNewEvent(change) && !change.key.startsWith('idempotency/')) yield change;",
  },
  {
    name: 'key-not-kept',
    reenacts: 'the idempotency key is not remembered with what it made',
    invariant: 4,
    file: 'core/operations/instance.ts',
    find: "...rememberCreate(input, 'instance', { key, id }, ctx),",
    replace: '',
  },
  {
    name: 'key-not-asked',
    reenacts: 'a repeated create is not recognised',
    invariant: 3,
    file: 'core/operations/instance.ts',
    find: "const earlier = earlierCreate(snapshot, input, 'instance');",
    replace: 'const earlier: Decision | undefined = undefined;',
  },
  {
    name: 'prefix-for-key',
    reenacts: 'a key is matched by its beginning: Nomad CVE-2025-4922',
    invariant: 3,
    file: 'core/operations/create.ts',
    find: "const entry = snapshot.get('idempotency', keys.idempotency(input.project, input.idempotencyKey));",
    replace:
      "const wanted = keys.idempotency(input.project, input.idempotencyKey);\n  const entry = snapshot.get('idempotency', wanted) ?? [...snapshot.list('idempotency')].find(({ key }) => wanted.startsWith(key));",
  },
  {
    name: 'limit-without-gate',
    reenacts: 'two control planes each count to the limit: Orchard #138',
    invariant: 0,
    rare: { hint: 30 },
    file: 'core/controllers/bind.ts',
    find: '...passGates(snapshot, gates), ',
    replace: '',
  },

  // ── sessions and reports ──────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'incarnation-not-checked',
    reenacts: 'a report of an earlier life is taken for the present one: Orchard #64',
    invariant: 7,
    with: ['driver-fails', 'network-slow'],
    file: 'core/operations/report.ts',
    find: 'if (!instance || instance.value.status.host !== host || instance.value.status.incarnation !== report.incarnation)',
    replace: 'if (!instance || instance.value.status.host !== host)',
  },
  {
    name: 'sequence-not-checked',
    reenacts: 'a report that was overtaken is taken after the newer one: etcd #15271, time travel',
    invariant: 7,
    file: 'core/operations/report.ts',
    find: '(epoch === last.epoch && sequence <= last.sequence)',
    replace: 'false',
  },
  {
    name: 'back-in-time',
    reenacts: 'an agent follows a control plane that lags behind what it has seen: Sieve, 15 of 21 bugs',
    invariant: 5,
    with: ['store-slow', 'network-streamCut', 'server-pause', 'server-store-parted'],
    world: asDrawn,
    rare: { hint: 29 },
    file: 'agent/session/assignments.ts',
    find: "if (event.type === 'sync' && event.revision < state.revision) {",
    replace: "if (event.type === 'sync' && event.revision < 0) {",
  },
  {
    name: 'act-before-fence',
    reenacts: 'an agent makes guests from an old ledger before it was told what is wanted now: Nova 1713783',
    invariant: 5,
    with: ['agent-crash', 'partition', 'host-power-loss'],
    world: { hosts: 3, tenants: 4 },
    rare: { hint: 21 },
    file: 'agent/guests/guest-reconciler.ts',
    find: "if (seen === undefined && !ledger.confirmed) return 'rest';",
    replace: '',
  },
  {
    name: 'busy-is-deaf',
    reenacts:
      'a control plane that does not get round to reading heartbeats calls their hosts dead: SWIM before Lifeguard (arXiv:1707.00788)',
    invariant: 0,
    with: ['server-flooded', 'create-burst'],
    world: { servers: 1, hosts: 4, tenants: 3 },
    file: 'server/hearing.ts',
    find: 'if (busy) silence.excuse(sinceMs, excusedShare);\n    else if',
    replace: 'if',
  },
  {
    name: 'silence-is-death',
    reenacts: 'a restart of the control plane failed healthy hosts by their old heartbeats: Orchard PR #454',
    invariant: 9,
    file: 'core/controllers/hosts/host-health.ts',
    find: 'const silentMs = ctx.monotonicMs - seenAtMs;',
    replace:
      "const renewedAtMs = snapshot.get('lease', keys.lease(host.value.metadata.name))?.value.renewedAtMs;\n    const silentMs = renewedAtMs === undefined ? ctx.monotonicMs - seenAtMs : ctx.nowMs - renewedAtMs;",
  },
  {
    name: 'heartbeats-not-counted',
    reenacts: 'the first heartbeat is counted, those after it are not: Orchard #118',
    invariant: 2,
    file: 'core/state/cache.ts',
    find: 'if (sign > 0) this.silence.noteHeartbeat(value.host);\n        else this.silence.forget(value.host);',
    replace: 'if (sign > 0 && this.silence.seenAtMs(value.host) === undefined) this.silence.noteHeartbeat(value.host);',
  },
  {
    name: 'exclusive-restarted',
    reenacts: 'what may still run on a lost host is started elsewhere: Nomad lost allocations, Kubernetes #59848',
    invariant: 2,
    rare: { hint: 25 },
    file: 'core/controllers/restart.ts',
    find: "return !((exclusive || how?.disk === 'kept') && mayRunUnseen(instance));",
    replace: 'return true;',
  },
  {
    name: 'lost-for-good',
    reenacts: 'an instance stays failed for the loss of a host that is heard again: Orchard PR #454',
    invariant: 3,
    rare: { hint: 29 },
    file: 'core/controllers/hosts/lost-host.ts',
    find: 'if (!host || !status.guest || status.report?.epoch !== host.value.status.epoch) return emptyPlan;',
    replace: 'if (!host || host.value.status.epoch >= 0) return emptyPlan;',
  },
  {
    name: 'unanswered-for-unheard',
    reenacts: 'a report without an answer is taken for one that nobody heard: what came before it is never said again',
    invariant: 3,
    with: ['guest-held', 'network-answerLost', 'store-unknown'],
    world: asDrawn,
    rare: { hint: 165 },
    file: 'agent/session/reports.ts',
    find: 'for (const content of contents) said.get(idOf(content))?.delete(incarnationOf(content));',
    replace: '',
  },
  {
    name: 'seen-too-little',
    reenacts: 'observedGeneration is that of the last report, whatever was seen before',
    invariant: 7,
    with: ['agent-crash', 'disk-failed'],
    file: 'core/state/instance-change.ts',
    find: 'return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } };',
    replace:
      'const observedGeneration = status.report?.sequence === 1 ? 0 : status.observedGeneration;\n  return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status: { ...status, observedGeneration } } };',
  },
  {
    name: 'generation-reset',
    reenacts: 'the generation begins anew with a change',
    invariant: 7,
    file: 'core/operations/replace.ts',
    find: 'generation: metadata.generation + (change.specChanged ? 1 : 0) };',
    replace: 'generation: change.specChanged ? (metadata.generation % 2) + 1 : metadata.generation };',
  },
  {
    name: 'restarts-forgotten',
    reenacts: 'what is placed anew begins to count anew, so that it is restarted for ever',
    invariant: 7,
    file: 'core/state/instance-change.ts',
    find: 'return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } };',
    replace:
      "const restartCount = status.phase === 'Scheduled' ? 0 : status.restartCount;\n  return { key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status: { ...status, restartCount } } };",
  },

  // ── watches and caches ────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'slow-watch-loses',
    reenacts: 'what comes while a watcher is busy is lost: etcd #17529',
    invariant: 6,
    file: 'store/watch-tail.ts',
    find: 'if (events.length > 0) yield events;',
    replace: 'if (events.length > 0) {\n        yield events;\n        seen = this.#history.revision();\n      }',
  },
  {
    name: 'watch-resumes-late',
    reenacts: 'a watch goes on one revision too late: etcd #20221',
    invariant: 6,
    file: 'server/http/watch/watch-feed.ts',
    find: 'let revision = after;',
    replace: 'let revision = after > 0 ? after + 1 : after;',
  },
  {
    name: 'watch-resumes-early',
    reenacts: 'a watch tells of a change a second time: etcd #17247',
    invariant: 6,
    file: 'server/http/watch/watch-feed.ts',
    find: 'let revision = after;',
    replace: 'let revision = Math.max(0, after - 1);',
  },
  {
    name: 'bookmark-too-soon',
    reenacts: 'a bookmark of a revision of which not all was told: etcd #15220',
    invariant: 6,
    file: 'server/http/watch/watch-lines.ts',
    find: 'lines.text(bookmarkLine(revision));',
    replace: 'lines.text(bookmarkLine(revision + 2));',
  },
  {
    name: 'deletion-not-told',
    reenacts: 'a watcher is not told of a deletion: etcd #19179',
    invariant: 6,
    file: 'server/http/watch/watch-lines.ts',
    find: 'else lines.text(deleteLine(event, named));',
    replace: 'else if (event.revision % 4 > 0) lines.text(deleteLine(event, named));',
  },
  {
    name: 'compaction-swallowed',
    reenacts: 'a control plane goes on after a compaction as if nothing was missing: etcd #18089',
    invariant: 6,
    file: 'server/control-loop.ts',
    find: 'if (compacted) await this.#load();',
    replace: "if (compacted) cache.revision = (await this.#store.list('', { limit: 1 })).revision;",
  },
  {
    name: 'two-moments-for-one',
    reenacts:
      'what was read of a store at different moments is taken for its state: a create told of what is not there',
    invariant: 6,
    with: ['store-compacted', 'server-crash'],
    file: 'server/storage/read-state.ts',
    find: 'if (kindOfKey(key) !== undefined) changes.set(',
    replace: 'if (kindOfKey(key) !== undefined && revision < 0) changes.set(',
  },
  {
    name: 'deleted-key-kept',
    reenacts: 'a cache that lists anew keeps what was deleted meanwhile: Sieve, cassandra-operator #402',
    invariant: 6,
    world: { hosts: 4, tenants: 4, stormMs: 60_000 },
    file: 'core/state/cache.ts',
    find: 'if (!listed.has(key)) listed.set(key, { key, value: null, revision });',
    replace: 'if (!listed.has(key) && revision < 0) listed.set(key, { key, value: null, revision });',
  },
  {
    name: 'deleted-key-revived',
    reenacts: 'the cache revives what was deleted before its own commit was answered',
    invariant: 6,
    world: { hosts: 4, tenants: 4, stormMs: 60_000 },
    file: 'core/state/cache.ts',
    find: "if (source === 'own' ? revision < known || revision <= this.revision : revision <= known) return false;",
    replace: 'if (revision < known) return false;',
  },
  {
    name: 'own-commit-hides-others',
    reenacts: 'what another control plane wrote in between is taken for an own commit',
    invariant: 6,
    file: 'server/control-loop.ts',
    find: 'if (cache.isOwn(revision)) own = revision;',
    replace: 'if (cache.isOwn(revision) || cache.isOwn(revision + 1)) own = revision;',
  },
  {
    name: 'wake-up-lost',
    reenacts: 'room came free and nobody who waited was told: Orchard #381',
    invariant: 3,
    file: 'core/controllers/placement.ts',
    find: 'return before !== null; // released, or made smaller',
    replace: 'return false;',
  },
  {
    name: 'no-requeue',
    reenacts: 'a controller that does not ask to be called again: what is due waits for the next full pass',
    invariant: 3,
    with: ['guest-crash'],
    file: 'core/controllers/restart.ts',
    find: 'return { changes: [], requeueAfterMs: Math.min(waitMs, restartDelayMs) };',
    replace: 'return emptyPlan;',
  },

  // ── agents and guests ─────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'unknown-guest-removed',
    reenacts: 'a host destroys what it does not know: Nova 1713783, cassandra-operator #402',
    invariant: 9,
    with: ['disk-failed', 'agent-crash'],
    rare: { hint: 15 },
    file: 'agent/guests/guest-reconciler.ts',
    find: "if (entry === undefined) return 'rest'; // a guest without an entry is reported by the heartbeat, and not touched",
    replace:
      'if (entry === undefined) {\n        for (const { driver, guest } of seenGuests(this.#parts)) if (guest.instanceId === instanceId) await driver.remove(instanceId);\n        return "rest";\n      }',
  },
  {
    name: 'guests-die-with-agent',
    reenacts: 'an agent that stops takes its guests with it: Kubernetes #118559, #133382',
    invariant: 9,
    with: ['agent-stop'],
    file: 'agent/agent.ts',
    find: '    // Drivers first, so that a creation under way is left as it is, to be finished after the next start.',
    replace:
      '    for (const driver of drivers) for (const { instanceId } of driver.guests()) await driver.stop(instanceId, 0);',
  },
  {
    name: 'second-guest',
    reenacts: 'the guest of an older life is left where it is, in the way of the new one: Nova evacuation',
    invariant: 3,
    world: asDrawn,
    rare: { hint: 1 },
    file: 'agent/guests/plan.ts',
    find: "running:   { nothing: 'create',         older: 'remove',",
    replace: "running:   { nothing: 'create',         older: 'none',",
  },
  {
    name: 'stale-not-repeated',
    reenacts: 'what a control plane that lagged called stale is never said again: Orchard #64, stuck in running',
    invariant: 3,
    rare: { hint: 17 },
    file: 'agent/session/heartbeats.ts',
    find: 'this.#parts.reporter.repeatStale();',
    replace: '',
  },

  // ── restores ──────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'restored-as-it-was',
    reenacts: 'what a backup says is taken for what is: live guests go, second copies start',
    invariant: 2,
    rare: { hint: 25 },
    file: 'core/operations/restored-record.ts',
    find: 'return restoredInstance(withTimeToExtend(asClaimed(record, nowMs), nowMs), nowMs);',
    replace: 'return record;',
  },
  {
    name: 'strangers-overlooked',
    reenacts:
      'after a restore an instance is placed where another life of it is that no backup knows, and takes its place',
    invariant: 8,
    with: ['restored', 'guest-crash', 'guest-dies-early'],
    file: 'core/scheduler/registry.ts',
    find: '  unknownGuest,\n',
    replace: '',
  },

  // ── volumes ───────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'volume-of-two',
    reenacts: 'a disk that an instance has is given to another, too: Cinder, attachments without a reservation',
    invariant: 2,
    rare: { hint: 114 },
    file: 'core/operations/volumes/attach.ts',
    find: 'if (holder && holder.value.metadata.id !== id)',
    replace: 'if (holder && holder.value.metadata.id === id)',
  },
  {
    name: 'volume-without-its-room',
    reenacts: 'volumes take room that nobody holds, until the host is full: Cinder, free_capacity_gb',
    invariant: 5,
    file: 'core/ledger/ledger.ts',
    find: 'amounts: { [at.providerId]: { DISK_GB: heldGiB(volume.spec) } },',
    replace: 'amounts: { [at.providerId]: { DISK_GB: volume.spec.sizeGiB - 1 } },',
  },
  {
    name: 'restored-volume-as-it-was',
    reenacts: 'what a host made since the backup is removed, because the backup does not know it',
    invariant: 8,
    with: ['restored'],
    world: asDrawn,
    rare: { hint: 214 },
    file: 'core/operations/restored-record.ts',
    find: 'return restoredVolume(record, nowMs);',
    replace: 'return record;',
  },

  // ── jobs and messages ─────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'acknowledged-before-stored',
    reenacts: 'a message is acknowledged before its job is durable, and a crash loses both',
    invariant: 4,
    file: 'server/intake/amqp/intake.ts',
    find: 'await this.#taker.take(message);\n      this.#acknowledged.add(message.deliveryTag);',
    replace: 'this.#acknowledged.add(message.deliveryTag);\n      await this.#taker.take(message);',
  },
  {
    name: 'result-made-again',
    reenacts: 'a result that is sent again is made again, and its receivers see two',
    invariant: 4,
    file: 'server/outbox/results/result-outbox.ts',
    find: 'Buffer.from(body),\n    );\n  }\n\n  /** A queue that is gone',
    replace:
      'Buffer.from(JSON.stringify({ ...JSON.parse(body), completed_at: this.#parts.decider.clock.nowMs() })),\n    );\n  }\n\n  /** A queue that is gone',
  },
  {
    name: 'piece-appended-twice',
    reenacts: 'an agent that starts again sends some of a log twice, and it is there twice',
    invariant: 9,
    with: ['network-duplicate'],
    rare: { hint: 14 },
    file: 'server/runs/run-files.ts',
    find: 'skip: size - offset,',
    replace: 'skip: 0,',
  },
  {
    name: 'end-of-log-unsent',
    reenacts:
      'a program has ended, and what it printed last is not waited for: actions/runner keeps two batches at its end',
    invariant: 9,
    rare: { hint: 2 },
    file: 'agent/runner/keeper/run-upload.ts',
    find: 'if (this.#sent >= size) {',
    replace: 'if (complete || this.#sent >= size) {',
  },
  {
    name: 'instance-without-verdict',
    reenacts: 'the instance of an attempt goes, and what became of the attempt is written nowhere',
    invariant: 3,
    file: 'core/controllers/jobs/end-attempt.ts',
    find: 'attempts: [...status.attempts.slice(0, -1), over],',
    replace: 'attempts: status.attempts,',
  },

  // ── news ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'delivery-under-way-forgotten',
    reenacts: 'the position is written down before what was read is delivered: at most once, called at least once',
    invariant: 4,
    file: 'server/outbox/webhooks/deliveries.ts',
    find: 'if (!pending.some((each) => each.event.id === event.id)) insert(pending, { event, attempts, nextAtMs: 0 });',
    replace: 'if (attempts > 0) insert(pending, { event, attempts, nextAtMs: 0 });',
  },
  {
    name: 'new-leader-begins-now',
    reenacts: 'what happened between two senders is sent by neither',
    invariant: 4,
    file: 'server/outbox/webhooks/webhook-sender.ts',
    find: 'const revision = known?.value.revision || (known ?? entry).revision;',
    replace: 'const { revision } = parts.decider.cache;',
  },
  {
    name: 'unknown-write-never-found',
    reenacts: 'a position whose write had no answer is taken for that of another server, and none is written any more',
    invariant: 4,
    with: ['store-unknown'],
    rare: { hint: 78 },
    file: 'server/outbox/webhooks/webhook-sender.ts',
    find: 'else this.#writeOver(decision.revision);',
    replace: '',
  },
  {
    name: 'retry-lets-others-pass',
    reenacts: 'an event that is tried again arrives after later ones of its object: "running" after "removed"',
    invariant: 4,
    file: 'server/outbox/webhooks/deliveries.ts',
    find: 'this.#pending.some((each) => each.nextAtMs !== undefined && each.event.partitionkey === partitionkey);',
    replace: 'false;',
  },
  {
    name: 'one-event-stops-all',
    reenacts: 'a receiver that refuses one event gets no other: head-of-line blocking',
    invariant: 4,
    file: 'server/outbox/webhooks/deliveries.ts',
    find: 'if (this.#inFlight.size >= inFlightMax) return undefined;',
    replace:
      'if (this.#inFlight.size >= inFlightMax || this.#pending.some((each) => (each.nextAtMs ?? 0) > nowMs)) return undefined;',
  },

  // ── hosts of other systems ────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'fresh-hold-taken-for-usage',
    reenacts:
      'reported usage is reduced by holds that its reporter has not seen yet: room that others use is given away',
    invariant: 1,
    world: { servers: 1, without: ['server-clock-jump'] },
    file: 'core/operations/inventory/apply-nodes.ts',
    find: 'const settled = settledOn(snapshot, name, of.asOfMs - of.settleMs);',
    replace: 'const settled = settledOn(snapshot, name, ctx.nowMs);',
  },
  {
    name: 'slow-list-ages-holds',
    reenacts: 'a list that was long on its way is taken for what is so now, and holds that it cannot know for known',
    invariant: 1,
    world: { servers: 1, without: ['server-clock-jump'] },
    file: 'core/operations/inventory/apply-nodes.ts',
    find: 'const settled = settledOn(snapshot, name, of.asOfMs - of.settleMs);',
    replace: 'const settled = settledOn(snapshot, name, ctx.nowMs - of.settleMs);',
  },
  {
    name: 'vanished-host-takes-its-holds',
    reenacts: 'a host that a list lacks is removed, and with it the room that is held there',
    invariant: 1,
    world: { servers: 1, without: ['server-clock-jump'] },
    rare: { hint: 55 },
    file: 'core/operations/inventory/apply-nodes.ts',
    find: 'const isHeld = [...snapshot.allocationsOnHost(name)].length > 0;',
    replace: 'const isHeld = false;',
  },

  // ── requests for placement ────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'key-not-looked-at',
    reenacts: 'a request that is sent again, because its answer was lost, holds room a second time',
    invariant: 4,
    file: 'server/http/routes/schedule/schedule-routes.ts',
    find: 'const { idempotencyKey } = idempotencyKeyOf(request);',
    replace: "const idempotencyKey = idempotencyKeyOf(request).idempotencyKey === '' ? '' : undefined;",
  },
  {
    name: 'acknowledged-before-next-attempt',
    reenacts: 'a message is acknowledged while its next attempt is not yet at the broker, and a crash loses both',
    invariant: 4,
    world: asDrawn,
    file: 'server/intake/amqp/task-taker.ts',
    find: 'if (outcome.retries && asked.attempt < attemptsMax) return this.#tryLater(asked);',
    replace:
      'if (outcome.retries && asked.attempt < attemptsMax) return void this.#tryLater(asked).catch(() => undefined);',
  },
  {
    name: 'broker-trouble-buries',
    reenacts: 'a message is called bad, because the connection broke while its result was sent',
    invariant: 0,
    world: asDrawn,
    file: 'server/intake/amqp/task-taker.ts',
    find: "throw new ApiError('Unavailable', `the broker does not take what follows: ${describeError(cause)}`, { cause });",
    replace: 'throw cause;',
  },

  // ── spares ────────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'spare-released-unasked',
    reenacts: 'a held machine is released without asking what has made it, so that the next one is placed on top of it',
    invariant: 4,
    world: asDrawn,
    file: 'core/operations/spares/spare.ts',
    find: "const atOnce = status.instance === undefined && (input.force === true || status.phase === 'Pending');",
    replace:
      "const atOnce = status.instance === undefined && (input.force === true || ['Pending', 'Ready'].includes(status.phase));",
  },
  {
    name: 'step-begun-again',
    reenacts: 'a server that takes over does not know that a call may have been made, and makes a second machine',
    invariant: 4,
    world: asDrawn,
    file: 'core/operations/spares/claim-step.ts',
    find: "is: claimedTerm === fence.ifRevision ? 'fresh' : 'resumed',",
    replace: "is: 'fresh',",
  },

  {
    name: 'claim-forgets-the-first',
    reenacts: 'a server that repeats a write does not recognise its own first write, and makes a second machine',
    invariant: 4,
    world: { scenario: 'spares' },
    rare: { hint: 3026 },
    file: 'core/operations/spares/claim-step.ts',
    find: 'const value = { ...entry.value, status: { ...status, claimedTerm } };',
    replace: 'const value = { ...entry.value, status: { ...status, claimedTerm: fence.ifRevision } };',
  },

  // ── rights ────────────────────────────────────────────────────────────────────────────────────────────────────────

  {
    name: 'watch-unfiltered',
    reenacts: 'a list is filtered by what its reader may read, and the watch that follows is not',
    invariant: 10,
    file: 'server/http/watch/watch-lines.ts',
    find: "if (known !== 'all' && !known(event.key)) continue;",
    replace: "if (known !== 'all' && event.value === null && !known(event.key)) continue;",
  },
  {
    name: 'found-without-asking',
    reenacts: 'an object is found by its name and shown before anybody asks whether it may be: the class of OWASP API1',
    invariant: 10,
    file: 'server/http/routes/find-resource.ts',
    find: 'if (byName && mayRead(caller.principal, byName.value, cache)) return byName;',
    replace: 'if (byName) return byName;',
  },
  {
    name: 'explanation-names-others',
    reenacts: 'who asks why an instance waits is told whose instances are in its way',
    invariant: 10,
    file: 'server/http/routes/visible.ts',
    find: "if (rights.everywhere('read', 'host') && rights.everywhere('read', 'instance')) return (explanation) => explanation;",
    replace: "if (rights.anywhere('read', 'instance')) return (explanation) => explanation;",
  },
];
