// Losses: whether everything on some hosts would find another place if those hosts were gone. Tried out: in a trial the hosts are set
// aside, and each instance is placed by its own request, neighbours included, one after the other in the order of their making.

import type { LossCapacity } from '../../api/capacity.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { holdsOnlyDisk } from '../ledger/ledger.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { belongingOf } from './belonging.ts';
import { hold } from './count-more.ts';
import { type Request, requestOf } from './request.ts';
import { engineOf, placementAt, refusalsOf, summarize } from './schedule.ts';
import type { Slot } from './slot.ts';
import type { Steps } from './steps.ts';

/** So many instances are placed anew for one answer: some half a second of work. */
const placedMax = 20_000;
const worstMax = 10;
const examplesMax = 5;

interface Candidate {
  readonly slot: Slot;
  readonly host: string;
  readonly movers: readonly Mover[];
}

interface Mover {
  readonly instance: Instance;
  readonly request: Request;
}

export function* lossesInSteps(snapshot: Snapshot, losses: 1 | 2): Steps<LossCapacity> {
  const hosts = yield* loadedHosts(snapshot);
  yield;
  const cases = losses === 1 ? hosts.length : (hosts.length * (hosts.length - 1)) / 2;
  let checked = 0;
  let survived = 0;
  let budget = (yield* rankAll(snapshot, hosts)) ? placedMax : placedMax / 20;
  const worst: LossCapacity['worst'][number][] = [];
  for (const lost of losses === 1 ? singles(hosts) : pairs(hosts)) {
    const instances = lost.reduce((count, { movers }) => count + movers.length, 0);
    if (checked > 0 && instances > budget) break;
    budget -= instances;
    yield;
    const outcome = lose(snapshot, lost);
    checked += 1;
    if (outcome.unplaced === 0) survived += 1;
    else worst.push({ hosts: lost.map(({ host }) => host), instances, ...outcome });
  }
  worst.sort((a, b) => b.unplaced - a.unplaced || (a.hosts.join() < b.hosts.join() ? -1 : 1));
  return { losses, checked, of: cases, survived, worst: worst.slice(0, worstMax) };
}

/** Hosts with something on them that runs, those with most first. */
function* loadedHosts(snapshot: Snapshot): Steps<Candidate[]> {
  const { fleet } = engineOf(snapshot);
  const found: Candidate[] = [];
  for (let slot = 0; slot < fleet.length; slot++) {
    const host = fleet.names[slot] ?? '';
    if (!fleet.hosts[slot]) continue;
    if (slot % 64 === 63) yield;
    const movers: Mover[] = [];
    for (const { value } of snapshot.allocationsOnHost(host)) {
      const { consumer } = value;
      if (consumer.kind === 'task' || holdsOnlyDisk(value)) continue;
      const instance = snapshot.get('instance', keys.instance(consumer.project, consumer.name))?.value;
      if (instance?.metadata.id !== consumer.id || instance.status.incarnation !== consumer.incarnation) continue;
      movers.push({ instance, request: requestOf(snapshot, instance) });
    }
    if (movers.length === 0) continue;
    movers.sort(
      ({ instance: { metadata: a } }, { instance: { metadata: b } }) =>
        a.createdAtMs - b.createdAtMs || (a.name < b.name ? -1 : 1),
    );
    found.push({ slot, host, movers });
  }
  return found.sort((a, b) => b.movers.length - a.movers.length || (a.host < b.host ? -1 : 1));
}

/** More shapes than this the engine does not keep ranked: then each placing costs a look at every host. */
const shapesMax = 200;

/** Has the rankings made one by one, so that no case has to wait for many. False: there are too many shapes. */
function* rankAll(snapshot: Snapshot, hosts: readonly Candidate[]): Steps<boolean> {
  const engine = engineOf(snapshot);
  const seen = new Set<string>();
  for (const { movers } of hosts) {
    for (const { request } of movers) {
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

/** Those with most on them together first, as near as their order tells. */
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

function lose(snapshot: Snapshot, lost: readonly Candidate[]): Outcome {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  return fleet.tentatively(() => {
    for (const { slot, movers } of lost) {
      for (const { instance } of movers) fleet.groups.try(slot, belongingOf(instance), -1);
      fleet.setAside(slot);
    }
    let unplaced = 0;
    const examples: Outcome['examples'][number][] = [];
    for (const { instance, request } of lost.flatMap(({ movers }) => movers)) {
      const choice = engine.choose(request);
      if (choice) {
        hold(fleet, request, choice.slot, placementAt(fleet, request, choice).held, 1);
        continue;
      }
      unplaced += 1;
      if (examples.length === examplesMax) continue;
      const refusals = refusalsOf(engine.countRefusals(request));
      const { project, name } = instance.metadata;
      examples.push({
        instance: `${project}/${name}`,
        message: summarize({ placed: false, hosts: fleet.count - lost.length, refusals }),
      });
    }
    return { unplaced, examples };
  });
}
