// Request: what an instance needs, with sizes, image defaults and profiles resolved. Plugins see nothing else of an
// instance. The tables in this file are caches: resolved specs by snapshot, and bounded ones of shared amounts and keys.
// They change no answer.

import { portsOf } from '../../api/instance-ports.ts';
import type { Amounts, Metadata } from '../../api/resources/metadata.ts';
import type { Image } from '../../api/resources/image.ts';
import type { Pool } from '../../api/resources/pool.ts';
import type { Size } from '../../api/resources/size.ts';
import type { Volume } from '../../api/resources/volume.ts';
import { type Demand, type Portion, wholeOf } from '../ledger/tree.ts';
import { keys } from '../state/keys.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { asksOf, heldGiB, volumesOf } from '../state/volumes.ts';
import { type Belonging, belongingOf } from './neighbours/belonging.ts';
import { type AskingSpec, demandOf } from './demand.ts';
import { type GroupTerm, groupTermsOf } from './neighbours/group-terms.ts';
import { type HostTerms, hostTermsOf, mayGoOutside, ownerOf } from './host-terms.ts';
import { ShortKeys } from './engine/short-keys.ts';
import { type ProfileName, type Weights, weightsOf } from './profiles.ts';

export interface Request extends Demand {
  /** The amounts that must be free, including those of unplaced volumes. */
  readonly amounts: Amounts;
  readonly portions: readonly Portion[];
  /** The instance's own amounts, including portions. */
  readonly assigned: Amounts;
  /** Volumes on no host yet; they are created on the instance's host. */
  readonly unplacedVolumes?: readonly Entry<Volume>[];
  /** Host ports that must be free, as `tcp/8080`. */
  readonly ports: readonly string[];
  readonly terms: HostTerms;
  readonly groups: readonly GroupTerm[];
  /** Its membership in groups. */
  readonly belonging: Belonging;
  readonly profile: ProfileName;
  readonly weights: Weights;
  /** Its id and priority; absent: no id, and priority 0. Read only by the rule about reservations. */
  readonly asker?: string;
  readonly priority?: number;
  /** Requested with a resource query: the answer is then worded NO ALLOCATIONS LEFT. */
  readonly byQuery?: boolean;
  /** Equal for requests whose host rules have equal verdicts on every host. */
  readonly termsKey: string;
  /** Equal for requests whose room rules have equal verdicts on every host. */
  readonly roomKey: string;
  /** Equal for requests whose host and room rules have equal verdicts on every host: one shape. */
  readonly shapeKey: string;
}

/** What is to be placed: an instance, or a task, which has no image. */
export interface Asking {
  readonly metadata: Pick<Metadata, 'project' | 'labels'> & { readonly id?: string };
  readonly spec: AskingSpec & { readonly priority?: number };
}

export function requestOf(snapshot: Snapshot, asking: Asking): Request {
  const { id } = asking.metadata;
  return {
    ...ownOf(snapshot, asking),
    groups: groupTermsOf(snapshot, asking),
    belonging: belongingOf(asking),
    ...(id === undefined ? {} : { asker: id }),
  };
}

/** The part that depends on the spec alone. */
type Own = Omit<Request, 'groups' | 'belonging' | 'asker'>;

/** Everything besides the spec that it was computed from. */
interface Known {
  readonly own: Own;
  readonly size: Size | undefined;
  readonly image: Image | undefined;
  readonly pool: Pool | undefined;
  readonly owner: string | undefined;
  readonly outside: boolean;
}

/**
 * Maximum number of entries, some hundred bytes each; the map is replaced when full. Not a WeakMap of specs: that would
 * keep an entry for every placed instance.
 */
const knownMax = 4096;
const knownBySnapshot = new WeakMap<Snapshot, Map<Asking['spec'], Known>>();

/** The same spec is used repeatedly: on arrival, at its turn, when it is explained. */
function ownOf(snapshot: Snapshot, asking: Asking): Own {
  const { spec } = asking;
  const size = spec.size === undefined ? undefined : snapshot.get('size', keys.size(spec.size))?.value;
  const image = spec.image === undefined ? undefined : snapshot.imageByName(spec.image)?.value;
  const pool = snapshot.get('pool', keys.pool(spec.placement.pool ?? 'default'))?.value;
  // The volumes belong to this instance alone, and their hosts change.
  if (spec.volumes !== undefined) return withVolumes(snapshot, asking, workOut(snapshot, asking, pool?.spec));
  const owner = ownerOf(snapshot, asking.metadata.project);
  const outside = mayGoOutside(snapshot, spec);
  let knownBySpec = knownBySnapshot.get(snapshot);
  const known = knownBySpec?.get(spec);
  if (
    known &&
    known.size === size &&
    known.image === image &&
    known.pool === pool &&
    known.owner === owner &&
    known.outside === outside
  )
    return known.own;
  const own = workOut(snapshot, asking, pool?.spec);
  if (!knownBySpec || knownBySpec.size >= knownMax) knownBySnapshot.set(snapshot, (knownBySpec = new Map()));
  knownBySpec.set(spec, { own, size, image, pool, owner, outside });
  return own;
}

/** Volumes on no host yet must fit beside the instance. */
function withVolumes(snapshot: Snapshot, { metadata: { project }, spec }: Asking, own: Own): Own {
  const { unplaced } = asksOf(volumesOf(snapshot, { project, volumes: spec.volumes }));
  if (unplaced.length === 0) return own;
  const gib = unplaced.reduce((sum, { value }) => sum + heldGiB(value.spec), own.amounts['DISK_GB'] ?? 0);
  return {
    ...withKeys({ ...own, amounts: { ...own.amounts, DISK_GB: gib } }),
    assigned: own.assigned,
    unplacedVolumes: unplaced,
  };
}

/**
 * Instances without a pool use the pool `default`, if it exists: its profile is that of the fleet and can change at any
 * time.
 */
function workOut(snapshot: Snapshot, asking: Asking, pool: Pool['spec'] | undefined): Own {
  const { spec } = asking;
  const { placement, priority } = spec;
  const profile = placement.profile ?? pool?.profile ?? 'optimize-utilization';
  return withKeys({
    ...demandOf(snapshot, spec),
    ports: portsOf(spec).flatMap(({ hostPort, protocol }) => (hostPort === 0 ? [] : [`${protocol}/${hostPort}`])),
    terms: hostTermsOf(snapshot, asking),
    profile,
    weights: weightsOf(profile, pool?.weights, placement.weights),
    ...(priority === undefined ? {} : { priority }),
    ...(placement.query === undefined ? {} : { byQuery: true }),
  });
}

type Keys = Pick<Request, 'assigned' | 'termsKey' | 'roomKey' | 'shapeKey'>;
type Unkeyed = Pick<Request, 'amounts' | 'portions' | 'sameSubtree' | 'ports' | 'terms' | 'weights'>;

/** Adds the recorded amounts, and the keys by which engines tell requests apart. */
export function withKeys<P extends Unkeyed>(parts: P): P & Keys {
  const { amounts, portions, sameSubtree, ports } = parts;
  const weights = weightsKeyOf(parts.weights);
  const terms = termsKeys.of(JSON.stringify(parts.terms));
  const plain = ports.length + portions.length === 0;
  const room = roomKeys.of(plain ? JSON.stringify(amounts) : JSON.stringify([amounts, portions, ports, sameSubtree]));
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

/** The amounts are kept with each instance: equal requests share one object. */
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

/** Computed once for the weights of a profile, which all its requests share. */
function weightsKeyOf(weights: Weights): string {
  let key = keyByWeights.get(weights);
  if (key === undefined) keyByWeights.set(weights, (key = weightsKeys.of(JSON.stringify(weights))));
  return key;
}
