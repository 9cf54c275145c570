// A fleet at rest, written straight into a store: hosts with room, instances that run on them, and what is remembered of each. The
// records are of the form that the control plane itself writes. It measures nothing.

import { newId } from '../src/base/ids.ts';
import { seededPrng } from '../src/base/prng.ts';
import type { Event } from '../src/api/resources/event.ts';
import type { Host } from '../src/api/resources/host.ts';
import type { Image } from '../src/api/resources/image.ts';
import type { Instance } from '../src/api/resources/instance.ts';
import { inventoriesOf } from '../src/core/ledger/inventory.ts';
import { encodeRecord } from '../src/core/state/codec.ts';
import { keyOf, keys } from '../src/core/state/keys.ts';
import type { AnyRecord } from '../src/core/state/records.ts';
import { schemaVersion } from '../src/core/state/upgrade.ts';
import { openStore } from '../src/store/open.ts';
import type { Store, Write } from '../src/store/store.ts';

export interface FleetSize {
  readonly hosts: number;
  readonly instances: number;
  readonly projects: number;
  /** One for each of the first instances. */
  readonly events: number;
  /** False: without the idempotency keys of their requests. */
  readonly requestKeys?: false;
}

/** Each write is a commit of this many records, as a busy control plane groups them. */
const writesPerCommit = 1_000;
const commitsAhead = 4;

const born = Date.now() - 3_600_000;
const prng = seededPrng(1);
const instanceCapacity = { VCPU: 2, MEMORY_MB: 2_048, DISK_GB: 10 };
const imageName = 'debian-12';
export const fleetImage = imageName;

export const hostNameOf = (i: number): string => `rack${Math.floor(i / 40)}-${i % 40}`;
export const projectNameOf = (i: number): string => `team-${i}`;
export const instanceNameOf = (i: number): string => `web-${i}`;

export function fillStore(url: string, size: FleetSize): Promise<void> {
  return storeRecords(url, recordsOf(size));
}

/** Writes records, by key, into a store. */
export async function storeRecords(url: string, records: Iterable<readonly [string, AnyRecord]>): Promise<void> {
  const store = await openStore(url);
  try {
    await fill(store, records);
    await store.compact((await store.list('', { limit: 1 })).revision); // as every control plane does now and then
  } finally {
    await store.close();
  }
}

async function fill(store: Store, records: Iterable<readonly [string, AnyRecord]>): Promise<void> {
  let batch: Write[] = [];
  const underWay = new Set<Promise<void>>();
  const flush = async (): Promise<void> => {
    const writes = batch;
    batch = [];
    const commit: Promise<void> = store.commit([], writes).then((done) => {
      underWay.delete(commit);
      if (!done.ok) throw new Error('a commit without conditions was refused');
    });
    underWay.add(commit);
    if (underWay.size >= commitsAhead) await Promise.race(underWay);
  };
  for (const [key, record] of records) {
    batch.push({ key, value: encodeRecord(record) });
    if (batch.length === writesPerCommit) await flush();
  }
  await flush();
  await Promise.all(underWay);
}

function* recordsOf({ hosts, instances, projects, events, requestKeys }: FleetSize): Generator<[string, AnyRecord]> {
  yield entry(image());
  const providers: string[] = [];
  for (let i = 0; i < hosts; i++) {
    const name = hostNameOf(i);
    const host = hostOf(name);
    providers.push(host.metadata.id);
    yield entry(host);
    yield entry({
      kind: 'provider',
      id: host.metadata.id,
      host: name,
      parent: null,
      generation: 1 + Math.floor(instances / hosts),
      inventories: inventoriesOf(host.spec, host.status.capacity ?? {}, host.status.reserved ?? {}),
      traits: [],
      aggregates: [],
    });
    yield entry({ kind: 'lease', host: name, epoch: host.status.epoch, renewedAtMs: born });
  }
  for (let i = 0; i < instances; i++) {
    const host = hostNameOf(i % hosts);
    const instance = instanceOf(i, { project: projectNameOf(i % projects), host });
    const { id, name, project } = instance.metadata;
    const key = keyOf(instance);
    yield [key, instance];
    yield entry({
      kind: 'allocation',
      consumer: { id, incarnation: 1, project, name },
      host,
      amounts: { [providers[i % hosts] ?? '']: instanceCapacity },
      driver: 'fake',
    });
    if (requestKeys !== false)
      yield [
        keys.idempotency(project, `request-${i}`),
        {
          kind: 'idempotency',
          resourceKey: key,
          resourceId: id,
          fingerprint: '0123456789abcdef0123456789abcdef',
          createdAtMs: born,
        },
      ];
    if (i < events) yield entry(eventOf(instance, host));
  }
}

function entry(record: AnyRecord): [string, AnyRecord] {
  return [keyOf(record), record];
}

function metadata(prefix: string, name: string, project = '') {
  return { id: newId(prefix, born, prng), name, project, revision: 0, generation: 1, labels: {}, createdAtMs: born };
}

function image(): Image {
  return {
    kind: 'image',
    schemaVersion,
    metadata: metadata('img', imageName),
    spec: {
      source: 'file:///nowhere',
      decompress: 'none',
      format: 'qcow2',
      nocloud: true,
      architecture: 'amd64',
      aliases: [],
      preload: false,
      defaults: { cpus: 2, memoryMiB: 2_048, diskGiB: 10 },
    },
    status: {},
  };
}

function hostOf(name: string): Host {
  return {
    kind: 'host',
    schemaVersion,
    metadata: { ...metadata('host', name), labels: { rack: name.slice(0, name.indexOf('-')) } },
    spec: { paused: false, allocationRatios: { VCPU: 1 } },
    status: {
      machineId: `machine-${name}`,
      bootId: 'c3f1a4de-9a3b-4a0e-8a55-0d7a0f2f8b11',
      epoch: 1,
      session: `session-of-${name}`,
      architecture: 'amd64',
      capacity: { VCPU: 256, MEMORY_MB: 262_144, DISK_GB: 4_000 },
      reserved: { MEMORY_MB: 1_024 },
      drivers: [{ name: 'fake', available: true, accelerator: 'none', version: '1' }],
      images: [],
      unknownGuests: [],
      agentVersion: '1.0.0',
      registeredAtMs: born,
      conditions: [
        { type: 'Ready', status: 'True', reason: 'Registered', message: 'its agent has registered', sinceMs: born },
      ],
    },
  };
}

function instanceOf(i: number, { project, host }: { readonly project: string; readonly host: string }): Instance {
  const at = born + i;
  const condition = (type: string, reason: string, message: string) => ({
    ...{ type, status: 'True' as const, reason, message },
    sinceMs: at,
  });
  return {
    kind: 'instance',
    schemaVersion,
    metadata: { ...metadata('inst', instanceNameOf(i), project), labels: { app: 'web', tier: 'front' } },
    spec: {
      image: imageName,
      powerState: 'running',
      restartPolicy: 'Never',
      exclusive: false,
      placement: { hostLabels: {} },
      ports: [],
      sshKeys: [],
      userData: '',
      stopGraceMs: 10_000,
    },
    status: {
      phase: 'Running',
      host,
      incarnation: 1,
      restartCount: 0,
      observedGeneration: 1,
      assigned: instanceCapacity,
      conditions: [
        condition('Scheduled', 'Placed', `placed on ${host}`),
        condition('Running', 'Started', 'the guest runs'),
        condition('Ready', 'Booted', 'the guest reported that it has booted'),
      ],
      guest: {
        state: 'running',
        ready: true,
        address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
        ports: [],
        accelerator: 'none',
        imageDigest: 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        startedAtMs: at,
        phases: ['image', 'disk', 'seed', 'start', 'boot'].map((name, step) => ({
          name,
          startedAtMs: at + step * 100,
          durationMs: 90,
        })),
      },
      report: { epoch: 1, sequence: 3 + Math.floor(i / 1_000) },
      scheduledAtMs: at,
      runningAtMs: at,
      readyAtMs: at,
    },
  };
}

function eventOf({ metadata: { id, name, project } }: Instance, host: string): Event {
  const event = newId('evt', born, prng);
  return {
    kind: 'event',
    schemaVersion,
    metadata: { ...metadata('evt', event, project), id: event },
    spec: {
      subject: { kind: 'instance', id, name, project },
      type: 'Normal',
      reason: 'Ready',
      message: 'booted',
      host,
    },
    status: {},
  };
}
