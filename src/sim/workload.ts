// Workload: tenants who create, stop, start, delete and watch instances through the real client, and repeat what got no answer with the
// same idempotency key, as the API asks of them. They note what they asked and what they were told; they judge nothing but watches.

import { sleep } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';
import { type Client, createClient, type NewResource } from '../api/client.ts';
import { ApiError } from '../api/errors.ts';
import type { HostSpec } from '../api/resources/host.ts';
import type { InstanceSpec, PowerState } from '../api/resources/instance.ts';
import type { Labels } from '../api/resources/metadata.ts';
import type { VolumeSpec } from '../api/resources/volume.ts';
import { createWatchCheck, type WatchedKind, watchedKinds } from './checkers/watch.ts';
import type { Commit } from './history.ts';
import { type CreateIntent, type Intents, keyLabel } from './intents.ts';
import type { Network, Peer } from './world/network.ts';
import { createProcessClock } from './world/process-clock.ts';
import { drawHostLabels, drawHostRules, drawPlacement } from './rules.ts';
import type { Scenario } from './scenario.ts';
import type { Tally } from './batch/tally.ts';
import type { Timeline } from './world/timeline.ts';

export interface WorkloadOptions {
  readonly scenario: Scenario;
  readonly timeline: Timeline;
  readonly prng: Prng;
  /** Of one who keeps volumes; absent: nobody does. A stream of its own, so that all else is the same either way. */
  readonly volumePrng?: Prng;
  readonly network: Network;
  readonly intents: Intents;
  readonly commits: readonly Commit[];
  readonly tally: Tally;
  readonly onViolation: (invariant: number, message: string) => void;
  readonly trace: (line: () => string) => void;
}

export interface Workload {
  /** Images that instances ask for; before anyone else begins. */
  prepare(): Promise<void>;
  start(): void;
  /** No new work. Resolves when every tenant knows what became of what it asked. */
  end(): Promise<void>;
  /** Many creates at once, by somebody new; answers how many. */
  burst(count: number): number;
  /** As an operator: pauses a host, or lets it go on. Answers, as those that follow, whether the host was there and nobody was faster. */
  pause(host: string): Promise<boolean>;
  /** As an operator: keeps back more or less of a host for itself. */
  reserve(host: string): Promise<boolean>;
  /** As an operator: says anew whom a host takes. */
  rule(host: string): Promise<boolean>;
}

export const imageNames = ['tiny', 'debian-12'];
/** Instances of the one who holds room, beside those of the tenants. */
const takeOversMax = 8;
/** Enough to be more than one at once. */
const firstCrowd = 5;
const tasksMax = 10;
const tasksLeftMax = 3;
const volumesMax = 6;
/** Tenants are less patient than agents. */
const answerTimeoutMs = 9000;

type InstanceBody = NewResource<Partial<InstanceSpec>>;

interface Owned {
  readonly id: string;
  readonly name: string;
}

export function createWorkload(options: WorkloadOptions): Workload {
  const { scenario, timeline, network, intents, tally, trace } = options;
  const over = new AbortController();
  const running: Promise<void>[] = [];
  let created = 0;
  let crowds = 0;

  const join = (name: string): { readonly peer: Peer; readonly client: Client } => {
    const peer: Peer = {
      name,
      clock: createProcessClock(timeline),
      identity: { role: 'operator', name },
      answerTimeoutMs,
    };
    return { peer, client: createClient({ fetch: network.fetchFor(peer), url: 'http://berth' }) };
  };
  const operator = join('operator');
  const operatorPrng = options.prng.split();

  /** Until there is an answer. What is refused is an answer. */
  const insist = async <Result>(peer: Peer, prng: Prng, call: () => Promise<Result>): Promise<Result | ApiError> => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.code !== 'Unavailable' && error.code !== 'HostUnreachable') return error;
        tally.hit('call-repeated');
        trace(() => `${peer.name}: again, after ${error.message}`);
        await sleep(peer.clock, 50 + prng.below(Math.min(4000, 200 * 2 ** attempt)));
      }
    }
  };

  /** A create, noted before and after; `mayRefuse` says which refusals are in order besides that of a quota. */
  const ask = async (
    { peer, client, prng }: { readonly peer: Peer; readonly client: Client; readonly prng: Prng },
    key: string,
    body: InstanceBody,
    mayRefuse: (code: ApiError['code']) => boolean,
  ): Promise<Owned | undefined> => {
    const intent: CreateIntent = { key, tenant: peer.name, outcome: 'open', instanceId: undefined };
    intents.creates.set(key, intent);
    const answer = await insist(peer, prng, () => client.create('instance', body, { idempotencyKey: key }));
    trace(() => `${peer.name}: create ${key} -> ${told(answer)}`);
    intent.outcome = answer instanceof ApiError ? 'refused' : 'accepted';
    if (answer instanceof ApiError) {
      const limited = scenario.quota !== undefined && (body.metadata?.project ?? 'default') === 'default';
      if (answer.code === 'QuotaExceeded' && limited) tally.hit('quota-refused');
      else if (!mayRefuse(answer.code))
        options.onViolation(3, `${peer.name} was refused create ${key}: ${answer.code} ${answer.message}`);
      return undefined;
    }
    intent.instanceId = answer.metadata.id;
    return { id: answer.metadata.id, name: answer.metadata.name };
  };

  /** Somebody who asks for much at once, and lets it be. */
  const crowd = async (name: string, count: number, prng: Prng): Promise<void> => {
    const { peer, client } = join(name);
    const one = (_: unknown, index: number): Promise<unknown> => {
      const key = `${name}-${index + 1}`;
      const metadata = { name: key, labels: { [keyLabel]: key, tenant: name } };
      const spec = { ...drawInstance(prng), placement: drawPlacement(prng, name) };
      return ask({ peer, client, prng: prng.split() }, key, { metadata, spec }, () => false);
    };
    await Promise.all(Array.from({ length: count }, one));
  };

  // ── one tenant ──────────────────────────────────────────────────────────────────────────────────────────────────

  const tenant = async (name: string, project: string, prng: Prng): Promise<void> => {
    const { peer, client } = join(name);
    const own: Owned[] = [];
    const freed: string[] = [];
    let keys = 0;

    let gang: { readonly name: string; readonly size: number; missing: number } | undefined;
    /** Members of a gang come one after the other; the last may never come. */
    const gangOf = (key: string): Pick<InstanceSpec, 'gang'> => {
      if (gang === undefined && prng.chance(1, 8)) {
        const size = 1 + prng.below(4);
        gang = { name: `gang-${key}`, size, missing: size };
      }
      if (gang === undefined) return {};
      const { name: ofGang, size } = gang;
      if (--gang.missing === 0) gang = undefined;
      return { gang: { name: ofGang, size } };
    };

    const create = async (): Promise<void> => {
      created += 1;
      const key = `${name}-${++keys}`;
      const reused = prng.chance(1, 3) ? freed.shift() : undefined;
      const body = {
        metadata: {
          ...(prng.chance(1, 4) ? {} : { name: reused ?? `${name}-i${keys}` }),
          project,
          labels: { [keyLabel]: key, tenant: name },
        },
        spec: { ...drawInstance(prng), placement: drawPlacement(prng, name), ...gangOf(key) },
      };
      const made = await ask(
        { peer, client, prng },
        key,
        body,
        (code) => code === 'AlreadyExists' && reused !== undefined,
      );
      if (made) own.push(made);
    };

    const remove = async (): Promise<void> => {
      const [gone] = own.splice(prng.below(own.length), 1);
      if (!gone) return;
      intents.deletesAsked.add(gone.id);
      const answer = await insist(peer, prng, () => client.delete('instance', gone.id, { project }));
      trace(() => `${name}: delete ${gone.name} ${gone.id} -> ${told(answer)}`);
      if (!(answer instanceof ApiError)) intents.deletesAccepted.add(gone.id);
      freed.push(gone.name);
    };

    const turn = async (): Promise<void> => {
      const which = own[prng.below(Math.max(1, own.length))];
      if (!which) return;
      const found = await insist(peer, prng, () => client.get('instance', which.id, { project }));
      if (found instanceof ApiError) return; // a control plane that has not heard of it yet, or it is gone
      const others = powerStates.filter((each) => each !== found.spec.powerState);
      const powerState = others[prng.below(others.length)] ?? 'running';
      const answer = await insist(peer, prng, () =>
        client.replace('instance', found.metadata.name, {
          metadata: { project, labels: found.metadata.labels, revision: found.metadata.revision },
          spec: { ...found.spec, powerState },
        }),
      );
      tally.hit(`tenant-${powerState}`);
      trace(() => `${name}: ${powerState} ${which.name} -> ${told(answer)}`);
    };

    const look = async (): Promise<void> => {
      const which = own[prng.below(Math.max(1, own.length))];
      await insist(peer, prng, () => client.list('instance', { limit: 10, project }));
      if (which) await insist(peer, prng, () => client.explain(which.id, { project }));
    };

    while (!over.signal.aborted) {
      await sleep(peer.clock, prng.below(2 * scenario.betweenCallsMsMean), over.signal);
      if (over.signal.aborted) break;
      const draw = prng.below(100);
      if (draw < 45 && created < scenario.instancesMax) await create();
      else if (draw < 65 && own.length > 0) await remove();
      else if (draw < 85) await turn();
      else if (draw < 90) await look();
    }
    for (let rest = prng.below(own.length + 1); rest > 0 && prng.chance(1, 2); rest--) await remove();
  };

  // ── one who holds room ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Reserves room for a while; then an instance takes it over, or it is given up, or its time runs out. */
  const holder = async (name: string, prng: Prng): Promise<void> => {
    const { peer, client } = join(name);
    const own: string[] = [];
    const made: string[] = [];
    let keys = 0;
    while (!over.signal.aborted) {
      await sleep(peer.clock, prng.below(6 * scenario.betweenCallsMsMean), over.signal);
      if (over.signal.aborted) break;
      const key = `${name}-${++keys}`;
      const task = own[prng.below(Math.max(1, own.length))];
      const draw = prng.below(100);
      if (draw >= 90) {
        // What is tried out in answering must leave no trace: the checkers see to that.
        await insist(peer, prng, () => client.capacity({ spec: { cpus: 1, memoryMiB: 256 }, losses: 2 }));
        await insist(peer, prng, () =>
          client.plan({ spec: { ...drawInstance(prng), placement: drawPlacement(prng, name) } }),
        );
        await insist(peer, prng, () => client.candidates({ spec: { cpus: 2, memoryMiB: 512 } }));
        tally.hit('capacity-asked');
      } else if (task === undefined || (draw < 45 && own.length < tasksMax)) {
        const spec = {
          cpus: 1 + prng.below(3),
          memoryMiB: 256 * (1 + prng.below(4)),
          ttlMs: 1000 + prng.below(40_000),
          ...(prng.chance(1, 2) ? { image: imageNames[0] ?? 'tiny' } : {}),
        };
        const body = { metadata: { name: key }, spec };
        const answer = await insist(peer, prng, () => client.create('task', body, { idempotencyKey: key }));
        tally.hit('task-created');
        trace(() => `${name}: reserve ${key} -> ${told(answer)}`);
        if (answer instanceof ApiError)
          options.onViolation(3, `${name} was refused task ${key}: ${answer.code} ${answer.message}`);
        else own.push(key);
      } else if (draw < 80 && made.length < takeOversMax) {
        own.splice(own.indexOf(task), 1);
        const body = {
          metadata: { name: key, labels: { [keyLabel]: key } },
          spec: { ...drawInstance(prng), powerState: 'running' as const, placement: { task } },
        };
        // The task may have ended, or be unknown yet to the control plane that was asked.
        const instance = await ask({ peer, client, prng }, key, body, (code) => code === 'InvalidRequest');
        if (!instance) continue;
        made.push(instance.id);
        tally.hit('task-named');
      } else {
        own.splice(own.indexOf(task), 1);
        const answer = await insist(peer, prng, () => client.delete('task', task));
        trace(() => `${name}: give up ${task} -> ${told(answer)}`);
      }
    }
    // Each holds its room for up to a minute and then the next gets it: a few may wait for that, hundreds would never end.
    for (const task of own.slice(tasksLeftMax)) await insist(peer, prng, () => client.delete('task', task));
    for (const id of made) {
      if (prng.chance(1, 2)) continue;
      intents.deletesAsked.add(id);
      const answer = await insist(peer, prng, () => client.delete('instance', id));
      if (!(answer instanceof ApiError)) intents.deletesAccepted.add(id);
    }
  };

  // ── one who keeps volumes ───────────────────────────────────────────────────────────────────────────────────────────

  /** Makes volumes, gives them to instances that come and go, takes them back, grows and copies them, and removes them. */
  const keeper = async (name: string, prng: Prng): Promise<void> => {
    const { peer, client } = join(name);
    const volumes: string[] = [];
    const instances: Owned[] = [];
    let keys = 0;
    const pick = <Item>(items: readonly Item[]): Item | undefined => items[prng.below(Math.max(1, items.length))];
    const note = (what: string, answer: Parameters<typeof told>[0]): boolean => {
      trace(() => `${name}: ${what} -> ${told(answer)}`);
      if (answer instanceof ApiError) return false;
      tally.hit(`volume-${what.slice(0, what.indexOf(' '))}`);
      return true;
    };
    const make = async (spec: Pick<VolumeSpec, 'host' | 'source'>): Promise<void> => {
      const key = `${name}-v${++keys}`;
      const body = { metadata: { name: key }, spec: { sizeGiB: 1 + prng.below(3), ...spec } };
      const answer = await insist(peer, prng, () => client.create('volume', body, { idempotencyKey: key }));
      if (note(`create ${key}`, answer)) volumes.push(key);
    };
    const alter = async (volume: string, what: string, wanted: (spec: VolumeSpec) => VolumeSpec): Promise<void> => {
      const found = await insist(peer, prng, () => client.get('volume', volume));
      if (found instanceof ApiError) return;
      const { labels, revision } = found.metadata;
      const body = { metadata: { labels, revision }, spec: wanted(found.spec) };
      note(`${what} ${volume}`, await insist(peer, prng, () => client.replace('volume', volume, body)));
    };
    const run = async (): Promise<void> => {
      const key = `${name}-${++keys}`;
      const wanted = [...new Set([pick(volumes), prng.chance(1, 3) ? pick(volumes) : undefined])];
      const spec = {
        ...drawInstance(prng),
        volumes: wanted.flatMap((each) => (each === undefined ? [] : [{ name: each }])),
      };
      if (spec.volumes.length === 0) return;
      const body = { metadata: { name: key, labels: { [keyLabel]: key } }, spec };
      // They may be another's, on different hosts, gone, or not known yet to the control plane that was asked.
      const made = await ask(
        { peer, client, prng },
        key,
        body,
        (code) => code === 'Conflict' || code === 'InvalidRequest',
      );
      if (made) instances.push(made);
    };
    const give = async ({ id }: Owned): Promise<void> => {
      const found = await insist(peer, prng, () => client.get('instance', id));
      if (found instanceof ApiError) return;
      const { volumes: had = [], ...others } = found.spec;
      const volume = pick(volumes);
      const kept = prng.chance(1, 2) ? had.slice(1) : had;
      const next =
        kept === had && volume !== undefined ? [...had.filter((each) => each.name !== volume), { name: volume }] : kept;
      const powerState = prng.chance(1, 6) ? ('stopped' as const) : ('running' as const);
      const spec = { ...others, powerState, ...(next.length === 0 ? {} : { volumes: next }) };
      const { name: at, labels, revision } = found.metadata;
      const answer = await insist(peer, prng, () =>
        client.replace('instance', at, { metadata: { labels, revision }, spec }),
      );
      note(`${next === kept ? 'detach' : 'attach'} ${at}`, answer);
    };
    const remove = async (): Promise<void> => {
      const [gone] = instances.splice(prng.below(instances.length), 1);
      if (!gone) return;
      intents.deletesAsked.add(gone.id);
      const answer = await insist(peer, prng, () => client.delete('instance', gone.id));
      if (!(answer instanceof ApiError)) intents.deletesAccepted.add(gone.id);
    };
    while (!over.signal.aborted) {
      await sleep(peer.clock, prng.below(4 * scenario.betweenCallsMsMean), over.signal);
      if (over.signal.aborted) break;
      const volume = pick(volumes);
      const instance = pick(instances);
      const draw = prng.below(100);
      if (volume === undefined || (draw < 20 && volumes.length < volumesMax))
        await make(prng.chance(1, 4) ? { host: `h${1 + prng.below(scenario.hosts.length)}` } : {});
      else if (draw < 40 && instances.length < volumesMax) await run();
      else if (draw < 60 && instance !== undefined) await give(instance);
      else if (draw < 68) await alter(volume, 'grow', (spec) => ({ ...spec, sizeGiB: spec.sizeGiB + 1 }));
      else if (draw < 76)
        await alter(volume, 'snapshot', (spec) => ({
          ...spec,
          snapshots: spec.snapshots.length > 1 ? spec.snapshots.slice(1) : [...spec.snapshots, `s${++keys}`],
        }));
      else if (draw < 80) {
        const found = await insist(peer, prng, () => client.get('volume', volume));
        const snapshot = found instanceof ApiError ? undefined : pick(found.spec.snapshots);
        if (snapshot !== undefined) await make({ source: { volume, snapshot } });
      } else if (draw < 90) await remove();
      else if (note(`delete ${volume}`, await insist(peer, prng, () => client.delete('volume', volume))))
        volumes.splice(volumes.indexOf(volume), 1);
    }
    while (instances.length > 0 && prng.chance(2, 3)) await remove();
  };

  // ── watches ─────────────────────────────────────────────────────────────────────────────────────────────────────

  const watcher = async (name: string, kind: WatchedKind, prng: Prng): Promise<void> => {
    const { peer, client } = join(name);
    for (let after: number | undefined; !over.signal.aborted; ) {
      const left = new AbortController();
      const end = (): void => left.abort();
      over.signal.addEventListener('abort', end, { once: true });
      try {
        after ??= (await client.list(kind, { limit: 1 })).revision;
        const check = createWatchCheck(options.commits, after, kind);
        for await (const change of client.watch(kind, { revision: after }, left.signal)) {
          const { type, revision } = change;
          const fault = check({
            type,
            revision,
            ...(type === 'bookmark' ? {} : { name: change.resource.metadata.name }),
          });
          if (fault !== undefined) return options.onViolation(6, `${name}: ${fault}`);
          tally.hit('watched');
          // A revision may hold several changes: only what came before it is surely complete.
          after = Math.max(after, type === 'bookmark' ? revision : revision - 1);
        }
      } catch (error) {
        if (error instanceof ApiError && error.code === 'Compacted') {
          tally.hit('watch-compacted');
          after = undefined;
        } else if (error instanceof ApiError && error.code === 'InvalidRequest') tally.hit('watch-too-early'); // this one lags behind the last
      } finally {
        over.signal.removeEventListener('abort', end);
      }
      await sleep(peer.clock, 100 + prng.below(2000), over.signal);
    }
  };

  const change = async (
    host: string,
    alter: (spec: HostSpec) => HostSpec,
    labelsOf: (labels: Labels) => Labels = (labels) => labels,
  ): Promise<boolean> => {
    const { peer, client } = operator;
    const found = await insist(peer, operatorPrng, () => client.get('host', host));
    if (found instanceof ApiError) return false; // it has not joined yet
    const answer = await insist(peer, operatorPrng, () =>
      client.replace('host', host, {
        metadata: { labels: labelsOf(found.metadata.labels), revision: found.metadata.revision },
        spec: alter(found.spec),
      }),
    );
    trace(() => `operator: ${host} -> ${told(answer)}`);
    return !(answer instanceof ApiError);
  };

  return {
    async prepare() {
      for (const name of imageNames) {
        await insist(operator.peer, operatorPrng, () =>
          operator.client.create(
            'image',
            { metadata: { name }, spec: { source: `https://images.example/${name}.qcow2` } },
            { idempotencyKey: `image-${name}` },
          ),
        );
      }
      const { quota } = scenario;
      if (quota === undefined) return;
      await insist(operator.peer, operatorPrng, () =>
        operator.client.create(
          'project',
          { metadata: { name: 'default' }, spec: { quota: { INSTANCES: quota } } },
          { idempotencyKey: 'project-default' },
        ),
      );
    },
    start() {
      for (let i = 1; i <= scenario.tenants; i++) {
        const project = scenario.projects[i % scenario.projects.length] ?? 'default';
        running.push(tenant(`tenant-${i}`, project, options.prng.split()));
      }
      const other = watchedKinds[options.prng.below(watchedKinds.length)] ?? 'instance';
      running.push(
        watcher('watcher-1', 'instance', options.prng.split()),
        watcher('watcher-2', other, options.prng.split()),
      );
      running.push(holder('holder-1', options.prng.split()));
      if (options.volumePrng) running.push(keeper('keeper-1', options.volumePrng));
    },
    async end() {
      over.abort();
      await Promise.all(running);
    },
    burst(count) {
      const least = crowds === 0 ? firstCrowd : 0; // so that there is one, whatever the tenants have made by then
      const room = Math.min(count, Math.max(least, scenario.instancesMax - created));
      if (room <= 0 || over.signal.aborted) return 0;
      created += room;
      crowds += 1;
      running.push(crowd(`crowd-${crowds}`, room, options.prng.split()));
      return room;
    },
    pause: (host) => change(host, (spec) => ({ ...spec, paused: !spec.paused })),
    reserve: (host) =>
      change(host, (spec) => ({
        ...spec,
        reserved: { VCPU: operatorPrng.below(3), MEMORY_MB: operatorPrng.below(2048) },
      })),
    rule: (host) =>
      change(
        host,
        (spec) => drawHostRules(operatorPrng, spec, scenario.projects),
        (labels) => drawHostLabels(operatorPrng, labels),
      ),
  };
}

const powerStates = ['running', 'suspended', 'stopped'] as const satisfies readonly PowerState[];

export function drawInstance(prng: Prng): Partial<InstanceSpec> {
  return {
    image: imageNames[prng.below(imageNames.length)] ?? 'tiny',
    cpus: 1 + prng.below(prng.chance(1, 5) ? 4 : 2),
    memoryMiB: 256 * (1 + prng.below(6)),
    diskGiB: prng.below(5),
    powerState: prng.chance(1, 10) ? 'stopped' : 'running',
    restartPolicy: prng.chance(1, 2) ? 'OnFailure' : 'Never',
    exclusive: prng.chance(1, 3),
    ports: prng.chance(1, 5) ? [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }] : [],
    stopGraceMs: prng.below(3000),
    ...(prng.chance(1, 2) ? { priority: prng.below(7) - 3 } : {}),
    ...(prng.chance(1, 4) ? { preemption: 'LowerPriority' } : {}),
  };
}

function told(answer: { readonly metadata: { readonly id: string; readonly name: string } } | ApiError): string {
  return answer instanceof ApiError
    ? `${answer.code}: ${answer.message}`
    : `${answer.metadata.name} ${answer.metadata.id}`;
}
