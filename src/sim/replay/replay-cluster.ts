// The records of a replay as the scheduler sees them. Hosts, and instances where rules look at them, are real records in the real cache;
// of claims only the sums are kept, so that a million of them are cheap.

import type { Host } from '../../api/resources/host.ts';
import { gpuClass, gpuModelTrait, gpuWhole } from '../../api/resources/host-rules.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { Cache } from '../../core/state/cache.ts';
import { keyOf } from '../../core/state/keys.ts';
import type { Allocation, AnyRecord, Inventory, Provider, RecordKind } from '../../core/state/records.ts';
import type { Entry, Snapshot, View } from '../../core/state/snapshot.ts';
import type { HostShape } from './replay-fleet.ts';

// Classes of a replay. CPUs are counted in thousandths: no rule minds the unit.
export const diskClass = 'CUSTOM_DISK_MIB';
export const networkClass = 'CUSTOM_NETWORK_PERCENT';
/** For an amount that is not stated. */
const plenty = 2 ** 45;
const project = 'trace';

export type Held = Allocation['amounts'];

export class ReplayCluster implements Snapshot {
  readonly #cache = new Cache(() => 0);
  readonly #views: View[] = [];
  readonly #used = new Map<string, Map<string, number>>();
  readonly #heldOnHost = new Map<string, number>();

  addHost(name: string, shape: HostShape): void {
    this.#put(hostRecord(name));
    for (const provider of providersOf(name, shape)) this.#put(provider);
  }

  /** Made known to rules about neighbours and about what is asked for; `host`: where it is. */
  setInstance(instance: Instance, host: string | undefined): void {
    const { status } = instance;
    this.#put({
      ...instance,
      status: host === undefined ? { ...status, phase: 'Pending' } : { ...status, phase: 'Running', host },
    });
  }

  removeInstance(instance: Instance): void {
    this.#put(instance, true);
  }

  hold(host: string, held: Held): void {
    this.#change(host, held, 1);
  }

  release(host: string, held: Held): void {
    this.#change(host, held, -1);
  }

  #change(host: string, held: Held, times: 1 | -1): void {
    for (const id in held) {
      let used = this.#used.get(id);
      if (!used) this.#used.set(id, (used = new Map()));
      const amounts = held[id];
      for (const resourceClass in amounts)
        used.set(resourceClass, (used.get(resourceClass) ?? 0) + times * (amounts[resourceClass] ?? 0));
    }
    this.#heldOnHost.set(host, this.heldOnHost(host) + times);
    const allocation: Allocation = { kind: 'allocation', consumer, host, amounts: held, driver: 'replay' };
    const change = {
      key: 'allocations/trace',
      kind: 'allocation',
      before: times > 0 ? null : allocation,
      after: times > 0 ? allocation : null,
    } as const;
    for (const view of this.#views) view.apply(change);
  }

  #put(record: AnyRecord, gone = false): void {
    const revision = this.#cache.revision + 1;
    this.#cache.apply([{ key: keyOf(record), value: gone ? null : record, revision }], revision);
  }

  // The snapshot.

  usedBy(providerId: string): ReadonlyMap<string, number> {
    return this.#used.get(providerId) ?? nothing;
  }

  heldOnHost(host: string): number {
    return this.#heldOnHost.get(host) ?? 0;
  }

  follow(view: View): void {
    this.#views.push(view);
    this.#cache.follow(view);
  }

  readonly get: Snapshot['get'] = (kind, key) => this.#cache.get(kind, key);
  readonly list: Snapshot['list'] = (kind) => this.#cache.list(kind);
  readonly count = (kind: RecordKind): number => this.#cache.count(kind);
  readonly instanceById: Snapshot['instanceById'] = (id) => this.#cache.instanceById(id);
  readonly providersOfHost = (host: string): readonly Entry<Provider>[] => this.#cache.providersOfHost(host);
  readonly imageByName: Snapshot['imageByName'] = (name) => this.#cache.imageByName(name);
  /** Claims are sums only: no rule of a replay looks at one. */
  readonly goneUncommitted = (): readonly never[] => [];
  readonly allocationsOnHost = (): readonly never[] => [];
  readonly allocationsHeldOnHost = (): readonly never[] => [];
  readonly portsHeldOnHost = (): readonly never[] => [];
  readonly allocationsOfConsumer = (): readonly never[] => [];
  readonly pendingInstanceKeys = (): readonly never[] => [];
  readonly leaseSeenAtMs = (): undefined => undefined;
  readonly leaseLostAtMs = (): number => 0;
}

const nothing: ReadonlyMap<string, number> = new Map();
const consumer = { id: 'trace', incarnation: 1, project, name: 'trace' };

function metadata(name: string, prefix: string, of: string) {
  return { id: `${prefix}_${name}`, name, project: of, revision: 0, generation: 1, labels: {}, createdAtMs: 0 };
}

function hostRecord(name: string): Host {
  return {
    kind: 'host',
    schemaVersion: 1,
    metadata: metadata(name, 'host', ''),
    spec: { paused: false, allocationRatios: {} },
    status: {
      epoch: 1,
      session: 'replay',
      machineId: name,
      architecture: 'amd64',
      drivers: [{ name: 'replay', available: true }],
      images: [],
      unknownGuests: [],
      conditions: [{ type: 'Ready', status: 'True', reason: 'Replay', message: 'ready', sinceMs: 0 }],
    },
  };
}

export function instanceRecord(
  name: string,
  spec: Pick<Instance['spec'], 'placement'> & Partial<Instance['spec']>,
  labels: Record<string, string>,
): Instance {
  return {
    kind: 'instance',
    schemaVersion: 1,
    metadata: { ...metadata(name, 'inst', project), labels },
    spec: {
      image: 'trace',
      powerState: 'running',
      restartPolicy: 'Never',
      exclusive: false,
      ports: [],
      sshKeys: [],
      userData: '',
      stopGraceMs: 0,
      ...spec,
    },
    status: { phase: 'Pending', incarnation: 1, restartCount: 0, observedGeneration: 1, conditions: [] },
  };
}

/** The host's own provider, then one for each GPU. */
function providersOf(name: string, shape: HostShape): Provider[] {
  const root = provider(name, `host_${name}`, {
    VCPU: shape.cpuMilli,
    MEMORY_MB: shape.memoryMiB ?? plenty,
    ...(shape.diskMiB === undefined ? {} : { [diskClass]: shape.diskMiB }),
    ...(shape.networkPercent === undefined ? {} : { [networkClass]: shape.networkPercent }),
  });
  const traits = shape.gpuModel === '' ? [] : [gpuModelTrait(shape.gpuModel)];
  const gpus = Array.from({ length: shape.gpus }, (_, i) => ({
    ...provider(name, `host_${name}-gpu${String(i).padStart(3, '0')}`, { [gpuClass]: gpuWhole }),
    parent: root.id,
    traits,
  }));
  return [root, ...gpus];
}

function provider(host: string, id: string, amounts: Amounts): Provider {
  return {
    kind: 'provider',
    id,
    host,
    parent: null,
    generation: 1,
    inventories: Object.fromEntries(Object.entries(amounts).map(([name, total]) => [name, inventory(total)])),
    traits: [],
    aggregates: [],
  };
}

function inventory(total: number): Inventory {
  return { total, reserved: 0, minUnit: 1, maxUnit: Math.max(1, total), stepSize: 1, allocationRatio: 1 };
}
