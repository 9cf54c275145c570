// Losses: whether everything on some hosts would fit elsewhere if those hosts were lost. In a trial the hosts are
// removed, and each instance is placed by its own request, neighbours included, in order of creation.

import type { LossCapacity } from '../../api/capacity.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { holdsOnlyDisk } from '../ledger/ledger.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { belongingOf, placeOf } from '../scheduler/neighbours/belonging.ts';
import { hold } from './count-more.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { engineOf, placementAt, refusalsOf, summarize } from '../scheduler/schedule.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import type { Steps } from '../scheduler/steps.ts';

/** Limit on placements for one answer: about half a second of work. */
const placedMax = 20_000;
/** Placements, and lookups, per step: about 5 ms each. */
const placedPerStep = 16;
const lookedUpPerStep = 512;
const worstMax = 10;
const examplesMax = 5;

interface Candidate {
  readonly slot: Slot;
  readonly host: string;
  /** Number of running instances. They are looked up only when the host is part of a tested loss. */
  readonly instances: number;
}

interface Mover {
  readonly instance: Instance;
  readonly request: Request;
}

export function* lossesInSteps(snapshot: Snapshot, losses: 1 | 2): Steps<LossCapacity> {
  const hosts = yield* loadedHosts(snapshot);
  const cases = losses === 1 ? hosts.length : (hosts.length * (hosts.length - 1)) / 2;
  let checked = 0;
  let survived = 0;
  let budget = (yield* rankAll(snapshot, hosts)) ? placedMax : placedMax / 20;
  const failed: { readonly lost: readonly Candidate[]; readonly instances: number; readonly unplaced: number }[] = [];
  for (const lost of losses === 1 ? singles(hosts) : pairs(hosts)) {
    const instances = lost.reduce((count, each) => count + each.instances, 0);
    if (checked > 0 && instances > budget) break;
    budget -= instances;
    const { unplaced } = yield* lose(snapshot, lost, 0);
    checked += 1;
    if (unplaced === 0) survived += 1;
    else failed.push({ lost, instances, unplaced });
  }
  // An explanation examines every host, so only the displayed instances get one.
  failed.sort((a, b) => b.unplaced - a.unplaced || (namesOf(a.lost).join() < namesOf(b.lost).join() ? -1 : 1));
  const worst: LossCapacity['worst'][number][] = [];
  for (const { lost, instances } of failed.slice(0, worstMax))
    worst.push({ hosts: namesOf(lost), instances, ...(yield* lose(snapshot, lost, examplesMax)) });
  return { losses, checked, of: cases, survived, worst };
}

/** Hosts with running instances, the most first. */
function* loadedHosts(snapshot: Snapshot): Steps<Candidate[]> {
  const { fleet } = engineOf(snapshot);
  const found: Candidate[] = [];
  let lookedUp = 0;
  for (let slot = 0; slot < fleet.length; slot++) {
    const host = fleet.names[slot] ?? '';
    if (!fleet.hosts[slot]) continue;
    const instances = runningOn(snapshot, host).length;
    if (instances > 0) found.push({ slot, host, instances });
    lookedUp += 1 + instances;
    if (lookedUp < lookedUpPerStep) continue;
    lookedUp = 0;
    yield;
  }
  yield;
  found.sort((a, b) => b.instances - a.instances || (a.host < b.host ? -1 : 1));
  yield;
  return found;
}

/** The instances that would need room elsewhere: not tasks, and not instances stopped beside their disk. */
function runningOn(snapshot: Snapshot, host: string): Instance[] {
  const found: Instance[] = [];
  for (const { value } of snapshot.allocationsOnHost(host)) {
    const { consumer } = value;
    if (consumer.kind !== undefined || holdsOnlyDisk(value)) continue;
    const instance = snapshot.get('instance', keys.instance(consumer.project, consumer.name))?.value;
    if (instance?.metadata.id === consumer.id && instance.status.incarnation === consumer.incarnation)
      found.push(instance);
  }
  return found;
}

/** In order of creation. */
function* moversOn(snapshot: Snapshot, host: string): Steps<Mover[]> {
  const instances = runningOn(snapshot, host);
  instances.sort(({ metadata: a }, { metadata: b }) => a.createdAtMs - b.createdAtMs || (a.name < b.name ? -1 : 1));
  const movers: Mover[] = [];
  for (const instance of instances) {
    if (movers.length % lookedUpPerStep === 0) yield;
    movers.push({ instance, request: requestOf(snapshot, instance) });
  }
  return movers;
}

/** The engine keeps candidates for this many shapes: beyond it each placement costs a scan of all hosts. */
const shapesMax = 200;

/**
 * Builds the candidates shape by shape, so that no single step has to build many. Returns false when there are too many
 * shapes.
 */
function* rankAll(snapshot: Snapshot, hosts: readonly Candidate[]): Steps<boolean> {
  const engine = engineOf(snapshot);
  const seen = new Set<string>();
  let left = placedMax;
  for (const { host, instances } of hosts) {
    if ((left -= instances) < 0 && seen.size > 0) break;
    for (const { request } of yield* moversOn(snapshot, host)) {
      if (seen.has(request.shapeKey)) continue;
      if (seen.size === shapesMax) return false;
      seen.add(request.shapeKey);
      engine.fitCount(request);
      yield;
    }
  }
  return true;
}

function* singles(hosts: readonly Candidate[]): Iterable<readonly Candidate[]> {
  for (const host of hosts) yield [host];
}

/** Pairs with the most instances first, as far as the order of hosts allows. */
function* pairs(hosts: readonly Candidate[]): Iterable<readonly Candidate[]> {
  for (let sum = 1; sum <= 2 * hosts.length - 3; sum++) {
    for (let first = Math.max(0, sum - hosts.length + 1); 2 * first < sum; first++) {
      const [a, b] = [hosts[first], hosts[sum - first]];
      if (a && b) yield [a, b];
    }
  }
}

interface Outcome {
  readonly unplaced: number;
  readonly examples: LossCapacity['worst'][number]['examples'];
}

interface Gone {
  readonly slot: Slot;
  readonly movers: readonly Mover[];
}

interface Moved {
  readonly request: Request;
  readonly slot: Slot;
  readonly held: Allocation['amounts'];
}

function namesOf(lost: readonly Candidate[]): string[] {
  return lost.map(({ host }) => host);
}

/** Places the instances one by one, each on top of the earlier placements. Explains at most `explained` failures. */
function* lose(snapshot: Snapshot, lost: readonly Candidate[], explained: number): Steps<Outcome> {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  const gone: Gone[] = [];
  for (const { slot, host } of lost) gone.push({ slot, movers: yield* moversOn(snapshot, host) });
  const movers = gone.flatMap((each) => each.movers);
  const moved: Moved[] = [];
  const examples: Outcome['examples'][number][] = [];
  let unplaced = 0;
  for (let from = 0; from < movers.length; from += placedPerStep) {
    yield;
    fleet.tentatively(() => {
      leave(snapshot, fleet, gone);
      for (const { request, slot, held } of moved) hold(fleet, request, slot, held, 1);
      for (const { instance, request } of movers.slice(from, from + placedPerStep)) {
        const choice = engine.choose(request);
        if (choice) {
          const { held } = placementAt(fleet, request, choice);
          hold(fleet, request, choice.slot, held, 1);
          moved.push({ request, slot: choice.slot, held });
          continue;
        }
        unplaced += 1;
        if (examples.length === explained) continue;
        const refusals = refusalsOf(engine.countRefusals(request));
        const { project, name } = instance.metadata;
        examples.push({
          instance: `${project}/${name}`,
          message: summarize({ placed: false, hosts: fleet.count - lost.length, refusals }),
        });
      }
    });
  }
  return { unplaced, examples };
}

/** In a trial: removes these hosts and everything on them. Instances that left since the lookup count nowhere. */
function leave(snapshot: Snapshot, fleet: Fleet, gone: readonly Gone[]): void {
  for (const { slot, movers } of gone) {
    for (const { instance } of movers) {
      const now = snapshot.instanceById(instance.metadata.id)?.value;
      if (now && placeOf(now) === fleet.names[slot]) fleet.groups.try(slot, belongingOf(now), -1);
    }
    fleet.setAside(slot);
  }
}
