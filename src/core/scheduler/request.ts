// Request: what an instance needs, with sizes, image defaults and profiles resolved. All that plugins see of an instance.

import type { InstanceSpec } from '../../api/resources/instance.ts';
import type { Amounts, Labels, Metadata } from '../../api/resources/metadata.ts';
import type { Demand, Portion } from '../ledger/tree.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Belonging, Selector } from './groups.ts';
import { belongingOf } from './groups.ts';
import { type ProfileName, type Weights, weightsOf } from './profiles.ts';

/** What rules about a host's record may read. Requests with equal terms share their verdicts. */
export interface HostTerms {
  /** Null when the image is gone; undefined when none was asked for, as by those who only hold room. */
  readonly image?: { readonly name: string; readonly architecture: string } | null | undefined;
  /** The driver asked for by the instance or needed by its image. */
  readonly driver?: string | undefined;
  readonly pool?: string | undefined;
  readonly hostLabels?: Labels | undefined;
}

/** At most `max` members (the instance itself not counted) where it goes: on the host, or in the same domain of a label of hosts. */
export interface LimitTerm {
  readonly kind: 'limit';
  readonly members: Selector;
  /** `host`, or the key of a label of hosts. */
  readonly by: string;
  readonly max: number;
}

/** Near to the members, or (negative weight) far from them. */
export interface AffinityTerm {
  readonly kind: 'affinity';
  readonly members: Selector;
  readonly by: string;
  readonly required: boolean;
  /** -100..100, when not required. */
  readonly weight: number;
}

/** Members even over the domains of a label of hosts, apart by `maxSkew` at most. */
export interface SpreadTerm {
  readonly kind: 'spread';
  readonly members: Selector;
  readonly by: string;
  readonly maxSkew: number;
  readonly required: boolean;
}

export type GroupTerm = LimitTerm | AffinityTerm | SpreadTerm;

export interface Request extends Demand {
  readonly amounts: Amounts;
  readonly portions: readonly Portion[];
  /** Ports of the host that must be free there, as `tcp/8080`. */
  readonly ports: readonly string[];
  readonly terms: HostTerms;
  readonly groups: readonly GroupTerm[];
  /** What the instance counts as, in the groups of others and its own. */
  readonly belonging: Belonging;
  readonly profile: ProfileName;
  readonly weights: Weights;
  /** Equal for requests whose host rules say the same of every host. */
  readonly termsKey: string;
  /** Equal for requests whose host and room rules say the same of every host: one shape. */
  readonly shapeKey: string;
}

/** What asks for a place: an instance, or a task, which may do without an image. */
export interface Asking {
  readonly metadata: Pick<Metadata, 'project' | 'labels'>;
  readonly spec: Pick<InstanceSpec, 'size' | 'cpus' | 'memoryMiB' | 'diskGiB' | 'resources' | 'placement' | 'ports'> & {
    readonly image?: string | undefined;
  };
}

export interface Room {
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
}

/** What an instance gets: its own numbers, else its size's, else its image's, else 1 CPU, 512 MiB and the image's disk. */
export function roomOf(snapshot: Snapshot, spec: Asking['spec']): Room {
  const size = spec.size === undefined ? undefined : snapshot.get('size', keys.size(spec.size))?.value.spec;
  const defaults = spec.image === undefined ? undefined : snapshot.imageByName(spec.image)?.value.spec.defaults;
  return {
    cpus: spec.cpus ?? size?.cpus ?? defaults?.cpus ?? 1,
    memoryMiB: spec.memoryMiB ?? size?.memoryMiB ?? defaults?.memoryMiB ?? 512,
    diskGiB: spec.diskGiB ?? size?.diskGiB ?? defaults?.diskGiB ?? 0,
  };
}

export function requestOf(snapshot: Snapshot, asking: Asking): Request {
  const { spec } = asking;
  const { placement } = spec;
  const room = roomOf(snapshot, spec);
  const image = spec.image === undefined ? undefined : snapshot.imageByName(spec.image)?.value;
  const amounts: Record<string, number> = { VCPU: room.cpus, MEMORY_MB: room.memoryMiB };
  if (room.diskGiB > 0) amounts['DISK_GB'] = room.diskGiB;
  for (const resourceClass in spec.resources) amounts[resourceClass] = spec.resources[resourceClass] ?? 0;
  const profile = placement.profile ?? poolProfile(snapshot, placement.pool) ?? 'optimize-utilization';
  return requestFrom({
    amounts,
    portions: [],
    ports: spec.ports.flatMap(({ hostPort, protocol }) => (hostPort === 0 ? [] : [`${protocol}/${hostPort}`])),
    terms: {
      image:
        spec.image === undefined
          ? undefined
          : image
            ? { name: image.metadata.name, architecture: image.spec.architecture }
            : null,
      driver: placement.driver ?? image?.spec.backend,
      pool: placement.pool,
      hostLabels: placement.hostLabels,
    },
    groups: [],
    belonging: belongingOf(asking),
    profile,
    weights: weightsOf(profile),
  });
}

/** Adds what engines tell requests apart by. */
export function requestFrom(parts: Omit<Request, 'termsKey' | 'shapeKey'>): Request {
  const termsKey = JSON.stringify([parts.terms, parts.weights]);
  const room =
    parts.ports.length + parts.portions.length === 0 ? [parts.amounts] : [parts.amounts, parts.portions, parts.ports];
  return { ...parts, termsKey, shapeKey: JSON.stringify(room) + termsKey };
}

/** Instances that name no pool go by the pool called `default`, if there is one: its profile is the fleet's, changeable any time. */
function poolProfile(snapshot: Snapshot, pool = 'default'): ProfileName | undefined {
  return snapshot.get('pool', keys.pool(pool))?.value.spec.profile;
}
