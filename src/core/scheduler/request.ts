// Request: what an instance needs, with sizes, image defaults and profiles resolved. All that plugins see of an instance.

import type { Amounts, Metadata } from '../../api/resources/metadata.ts';
import type { Pool } from '../../api/resources/pool.ts';
import { type Demand, type Portion, wholeOf } from '../ledger/tree.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Belonging, belongingOf } from './belonging.ts';
import { type AskingSpec, demandOf } from './demand.ts';
import { type GroupTerm, groupTermsOf } from './group-terms.ts';
import { type HostTerms, hostTermsOf } from './host-terms.ts';
import { ShortKeys } from './short-keys.ts';
import { type ProfileName, type Weights, weightsOf } from './profiles.ts';

export interface Request extends Demand {
  readonly amounts: Amounts;
  readonly portions: readonly Portion[];
  /** All that is asked for, portions included. */
  readonly assigned: Amounts;
  /** Ports of the host that must be free there, as `tcp/8080`. */
  readonly ports: readonly string[];
  readonly terms: HostTerms;
  readonly groups: readonly GroupTerm[];
  /** What the instance counts as, in the groups of others and its own. */
  readonly belonging: Belonging;
  readonly profile: ProfileName;
  readonly weights: Weights;
  /** Its id and priority; missing: nobody's yet, and 0. Only room that is kept for others asks for them. */
  readonly asker?: string;
  readonly priority?: number;
  /** It was asked for with a resource query, whose users know the answer NO ALLOCATIONS LEFT. */
  readonly byQuery?: boolean;
  /** Equal for requests whose host rules say the same of every host. */
  readonly termsKey: string;
  /** Equal for requests whose room rules say the same of every host. */
  readonly roomKey: string;
  /** Equal for requests whose host and room rules say the same of every host: one shape. */
  readonly shapeKey: string;
}

/** What asks for a place: an instance, or a task, which may do without an image. */
export interface Asking {
  readonly metadata: Pick<Metadata, 'project' | 'labels'> & { readonly id?: string };
  readonly spec: AskingSpec & { readonly priority?: number };
}

export function requestOf(snapshot: Snapshot, asking: Asking): Request {
  const { spec } = asking;
  const { placement } = spec;
  const pool = poolOf(snapshot, placement.pool);
  const profile = placement.profile ?? pool?.profile ?? 'optimize-utilization';
  return requestFrom({
    ...demandOf(snapshot, spec),
    ports: spec.ports.flatMap(({ hostPort, protocol }) => (hostPort === 0 ? [] : [`${protocol}/${hostPort}`])),
    terms: hostTermsOf(snapshot, asking),
    groups: groupTermsOf(snapshot, asking),
    belonging: belongingOf(asking),
    profile,
    weights: weightsOf(profile, pool?.weights, placement.weights),
    ...(asking.metadata.id === undefined ? {} : { asker: asking.metadata.id }),
    ...(spec.priority === undefined ? {} : { priority: spec.priority }),
    ...(placement.query === undefined ? {} : { byQuery: true }),
  });
}

/** Adds what is recorded of a placement, and what engines tell requests apart by. */
export function requestFrom(parts: Omit<Request, 'assigned' | 'termsKey' | 'roomKey' | 'shapeKey'>): Request {
  const { amounts, portions, ports } = parts;
  const weights = weightsKeyOf(parts.weights);
  const terms = termsKeys.of(JSON.stringify(parts.terms));
  const plain = ports.length + portions.length === 0;
  const room = roomKeys.of(plain ? JSON.stringify(amounts) : JSON.stringify([amounts, portions, ports]));
  const shared = plain ? shareAmounts(room, amounts) : amounts;
  return {
    ...parts,
    amounts: shared,
    assigned: plain ? shared : wholeOf(parts),
    termsKey: terms + weights,
    roomKey: room + weights,
    shapeKey: room + terms + weights,
  };
}

/** What instances hold is kept with each of them: the same object for all that ask for the same. */
function shareAmounts(room: string, amounts: Amounts): Amounts {
  const known = amountsByRoom.get(room);
  if (known) return known;
  if (amountsByRoom.size >= amountsKeptMax) amountsByRoom.clear();
  amountsByRoom.set(room, amounts);
  return amounts;
}

const amountsByRoom = new Map<string, Amounts>();
const amountsKeptMax = 16_384;

const termsKeys = new ShortKeys('t');
const roomKeys = new ShortKeys('r');
const weightsKeys = new ShortKeys('w');
const keyByWeights = new WeakMap<Weights, string>();

/** Worked out once for the weights of a profile, which all its requests share. */
function weightsKeyOf(weights: Weights): string {
  let key = keyByWeights.get(weights);
  if (key === undefined) keyByWeights.set(weights, (key = weightsKeys.of(JSON.stringify(weights))));
  return key;
}

/** Instances that name no pool go by the pool called `default`, if there is one: its profile is the fleet's, changeable any time. */
function poolOf(snapshot: Snapshot, pool = 'default'): Pool['spec'] | undefined {
  return snapshot.get('pool', keys.pool(pool))?.value.spec;
}
