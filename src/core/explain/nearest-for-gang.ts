// Nearest changes for a gang that does not fit at once: each change is tried for all waiting members. A change that
// helps one member only is not listed. The costs are those of nearest-change.ts.

import type { NearestChange } from '../../api/explanation.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { GangMember } from '../queue/gangs.ts';
import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { hold } from './count-more.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { nearestFirst } from './nearest-change.ts';
import { fewestEnds, instancesIn } from './nearest-ends.ts';
import { type ChangedHost, changedHosts, stepSets, stepsTold } from './nearest-host-steps.ts';
import { addHosts } from './nearest-hosts.ts';
import {
  attempt,
  consumerWords,
  fitter,
  leave,
  nameOf,
  openHosts,
  placesOf,
  type Question,
} from './nearest-question.ts';
import { type Request, withKeys } from '../scheduler/request.ts';
import { placementAt } from '../scheduler/schedule.ts';
import { seat, type Seated } from './seat.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import type { Steps } from '../scheduler/steps.ts';
import { wishesOf } from './wishes.ts';
import { listed } from '../scheduler/words.ts';

/** Larger gangs are not tried: about 10 ms per try. */
const membersMax = 128;
/** Number of members without a place for which ends are searched; each costs a scan of all hosts. */
const leftMax = 16;
/** Hosts tried per kind of change, of those that help a member. */
const hostsTriedMax = 32;

interface GangQuestion extends Question {
  readonly gang: string;
  readonly members: readonly GangMember[];
  readonly requests: readonly Request[];
  /** Members that find a place now, and those that do not. */
  readonly seated: readonly Seated[];
  readonly left: readonly Request[];
}

/** `members`: all waiting ones, the largest first. Undefined when nothing was tried. */
export function* nearestForGang(
  snapshot: Snapshot,
  instance: Instance,
  members: readonly GangMember[],
): Steps<NearestChange[] | undefined> {
  if (members.length > membersMax) return undefined;
  const fleet = fleetOf(snapshot);
  const requests = members.map(({ request }) => request);
  const { seated, left } = fleet.tentatively(() => seat(snapshot, requests));
  const [request] = left;
  if (!request) return [];
  const gang = instance.spec.gang?.name ?? '';
  const question: GangQuestion = { snapshot, fleet, instance, request, gang, members, requests, seated, left };
  const changes: NearestChange[] = [];
  for (const kind of [changeHosts, dropWishes, awaitEnds]) {
    yield;
    changes.push(...(yield* kind(question)));
  }
  changes.push(...(yield* addHosts(question, requests, gang)));
  return nearestFirst(changes);
}

/** Whether all of them fit at once under this supposition. */
function allFit(question: GangQuestion, suppose: () => void, requests = question.requests): boolean {
  return attempt(question, () => {
    suppose();
    return seat(question.snapshot, requests).left.length === 0;
  });
}

function* changeHosts(question: GangQuestion): Steps<NearestChange[]> {
  const { fleet, request, seated, gang } = question;
  const found: NearestChange[] = [];
  const mended = new Set<Slot>();
  for (const steps of stepSets) {
    yield;
    const candidates = changedHosts(fleet, slotsOf(question), steps).filter(({ slot }) => !mended.has(slot));
    const helpful = attempt(question, () => {
      for (const { slot, held, request: other } of seated) hold(fleet, other, slot, held, 1);
      for (const { slot, host } of candidates) fleet.imagine(slot, host);
      const fits = fitter(fleet, request);
      return candidates.filter(({ slot }) => fits(slot));
    });
    const enough: ChangedHost[] = [];
    for (const each of helpful.slice(0, hostsTriedMax)) {
      yield;
      const { slot, host } = each;
      if (!fleet.hosts[slot] || !allFit(question, () => fleet.imagine(slot, host))) continue;
      mended.add(slot);
      enough.push(each);
    }
    found.push(...stepsTold(fleet, enough, `, for all of gang ${gang}`));
  }
  return found;
}

function slotsOf({ fleet }: GangQuestion): Slot[] {
  const slots: Slot[] = [];
  for (let slot = 0; slot < fleet.length; slot++) if (fleet.hosts[slot]) slots.push(slot);
  return slots;
}

/** A requirement that all members with it drop. */
function* dropWishes(question: GangQuestion): Steps<NearestChange[]> {
  const { snapshot, fleet, members, gang } = question;
  const byMember = members.map(({ request, instance }) => ({
    request,
    wishes: new Map(
      wishesOf(request, instance.value.spec.placement.driver !== undefined).map(({ words, without }) => [
        words,
        without,
      ]),
    ),
  }));
  const found: NearestChange[] = [];
  for (const words of new Set(byMember.flatMap(({ wishes }) => [...wishes.keys()]))) {
    yield;
    const requests = byMember.map(({ request, wishes }) => {
      const without = wishes.get(words);
      return without ? withKeys(without) : request; // or the engine would reuse the verdicts of the original
    });
    const { seated, left } = attempt(question, () => seat(snapshot, requests));
    if (left.length > 0) continue;
    const where = [...new Set(seated.map(({ slot }) => slot))];
    found.push({
      change: 'DropRule',
      message: `drop ${words} in all of gang ${gang}`,
      ...placesOf(fleet, where),
      cost: 4,
    });
  }
  return found;
}

/** One after the other: for a member without a place beside the others, the fewest ends that give it one. */
function* awaitEnds(question: GangQuestion): Steps<NearestChange[]> {
  const { snapshot, fleet, instance, left, members, gang } = question;
  if (left.length > leftMax) return [];
  const held = [...question.seated];
  const gone: { readonly slot: Slot; readonly allocation: Allocation }[] = [];
  const spared = new Set(members.map((member) => member.instance.value.metadata.id));
  const end = (): void => {
    for (const { slot, allocation } of gone) leave(question, slot, allocation, 1);
  };
  for (const request of left) {
    const suppose = (): void => {
      end();
      for (const each of held) hold(fleet, each.request, each.slot, each.held, 1);
    };
    const one: Question = { snapshot, fleet, instance, request, spared, suppose };
    const already = attempt(one, () => seat(snapshot, [request]).seated);
    if (already.length === 0) {
      const best = yield* fewestEnds(one, yield* openHosts(one));
      if (!best) return [];
      const { slot } = best;
      for (const allocation of best.ends) {
        gone.push({ slot, allocation });
        spared.add(allocation.consumer.id);
      }
      const there = attempt(one, () =>
        fitter(fleet, request)(slot) ? placementAt(fleet, request, { slot, score: 0, fitCount: 1 }).held : null,
      );
      if (!there) return []; // changed in the meantime
      held.push({ slot, request, held: there });
    } else held.push(...already);
  }
  if (!allFit(question, end)) return [];
  const slots = [...new Set(gone.map(({ slot }) => slot))];
  const names = gone.map(
    ({ slot, allocation: { consumer } }) => `${consumerWords(snapshot, consumer)} on ${nameOf(fleet, slot)}`,
  );
  const what = names.length === 1 ? `${names[0]} ends` : `${names.length} end`;
  return [
    {
      change: 'InstancesEnd',
      message: `when ${what}${names.length === 1 ? ', ' : `: ${listed(names, 8)}; `}for all of gang ${gang}`,
      ...placesOf(fleet, slots),
      cost: 2 + 2 * gone.length,
      instances: instancesIn(gone.map(({ allocation }) => allocation)),
    },
  ];
}
