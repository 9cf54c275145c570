// Tenants and watchers over HTTP: they ask any control plane, ask another when there is no answer, and note what they asked, what they
// were told and what they saw. They judge nothing.

import { sleep } from '../../src/base/clock.ts';
import type { Prng } from '../../src/base/prng.ts';
import { systemClock } from '../../src/base/system.ts';
import type { Client } from '../../src/api/client/client.ts';
import { ApiError } from '../../src/api/errors.ts';
import type { InstanceSpec } from '../../src/api/resources/instance.ts';
import type { WatchedLine } from '../../src/sim/checkers/watch.ts';
import { type CreateIntent, type Intents, keyLabel } from '../../src/sim/intents.ts';
import { drawInstance, imageNames } from '../../src/sim/workload/draw-instance.ts';

export interface Asked {
  readonly atMs: number;
  readonly by: string;
  readonly what: string;
  /** `ok`, an error code, or `none`: no answer. */
  readonly answer: string;
  readonly tookMs: number;
}

/** One watch, from its beginning to its end. */
export interface WatchRecord {
  readonly by: string;
  readonly server: string;
  readonly after: number;
  readonly epoch: string;
  readonly lines: WatchedLine[];
  end: string;
}

export interface WorkloadOptions {
  readonly clients: readonly { readonly name: string; readonly client: Client }[];
  readonly prng: Prng;
  readonly intents: Intents;
  readonly tenants: number;
  readonly watchers: number;
  /** Maximum number of instances of one tenant at once. */
  readonly ownMax: number;
}

export class Workload {
  readonly asked: Asked[] = [];
  readonly watches: WatchRecord[] = [];
  /** What was refused that had to be taken. */
  readonly refused: string[] = [];
  /** Up to where each watcher has seen everything, and of which epoch. */
  readonly seen = new Map<string, { revision: number; epoch: string }>();
  answeredCreates = 0;
  readonly #options: WorkloadOptions;
  readonly #tenantsOver = new AbortController();
  readonly #watchersOver = new AbortController();
  #tenants: Promise<void>[] = [];
  #watchers: Promise<void>[] = [];

  constructor(options: WorkloadOptions) {
    this.#options = options;
  }

  async prepare(): Promise<void> {
    for (const name of imageNames)
      await this.#insist('operator', this.#options.prng, `image ${name}`, (client) =>
        client.create(
          'image',
          { metadata: { name }, spec: { source: `https://images.example/${name}.qcow2` } },
          { idempotencyKey: `image-${name}` },
        ),
      );
    // A control plane that has not heard of an image yet refuses what asks for it.
    for (const { client } of this.#options.clients)
      while ((await client.list('image')).items.length < imageNames.length) await sleep(systemClock, 50);
  }

  start(): void {
    const { tenants, watchers, prng } = this.#options;
    this.#tenants = Array.from({ length: tenants }, (_, i) => this.#tenant(`tenant-${i + 1}`, prng.split()));
    this.#watchers = Array.from({ length: watchers }, (_, i) => this.#watcher(`watcher-${i + 1}`, i, prng.split()));
  }

  /** No new work. Resolves when every tenant knows what became of what it asked. */
  async endTenants(): Promise<void> {
    this.#tenantsOver.abort();
    await Promise.all(this.#tenants);
  }

  async endWatchers(): Promise<void> {
    this.#watchersOver.abort();
    await Promise.all(this.#watchers);
  }

  // ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Until there is an answer, from whomever. What is refused is an answer. */
  async #insist<Result>(
    by: string,
    prng: Prng,
    what: string,
    call: (client: Client) => Promise<Result>,
  ): Promise<Result | ApiError> {
    const { clients } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const chosen = clients[prng.below(clients.length)];
      if (chosen === undefined) throw new Error('there is no control plane to ask');
      const atMs = systemClock.monotonicMs();
      const note = (answer: string): void => {
        const tookMs = Math.round(systemClock.monotonicMs() - atMs);
        this.asked.push({ atMs: Math.round(atMs), by, what: `${what} of ${chosen.name}`, answer, tookMs });
      };
      try {
        const result = await call(chosen.client);
        note('ok');
        return result;
      } catch (error) {
        const code = error instanceof ApiError ? error.code : 'none';
        note(code);
        if (error instanceof ApiError && !mayHelp.has(code)) return error;
        await sleep(systemClock, 30 + prng.below(Math.min(1_000, 50 * 2 ** attempt)));
      }
    }
  }

  // ── one tenant ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #tenant(name: string, prng: Prng): Promise<void> {
    const { intents, ownMax } = this.#options;
    const own: { readonly id: string; readonly name: string }[] = [];
    const freed: string[] = [];
    let keys = 0;

    const create = async (): Promise<void> => {
      const key = `${name}-${++keys}`;
      const intent: CreateIntent = { key, tenant: name, outcome: 'open', instanceId: undefined };
      intents.creates.set(key, intent);
      const reused = prng.chance(1, 3) ? freed.shift() : undefined;
      const body = {
        metadata: { name: reused ?? `${name}-i${keys}`, labels: { [keyLabel]: key, tenant: name } },
        spec: drawSpec(prng),
      };
      const answer = await this.#insist(name, prng, `create ${key}`, (client) =>
        client.create('instance', body, { idempotencyKey: key }),
      );
      if (answer instanceof ApiError) {
        intent.outcome = 'refused';
        if (answer.code !== 'AlreadyExists' || reused === undefined)
          this.refused.push(`${name} was refused create ${key}: ${answer.code} ${answer.message}`);
        return;
      }
      this.answeredCreates += 1;
      intent.outcome = 'accepted';
      intent.instanceId = answer.metadata.id;
      own.push({ id: answer.metadata.id, name: answer.metadata.name });
    };

    const remove = async (): Promise<void> => {
      const [gone] = own.splice(prng.below(own.length), 1);
      if (!gone) return;
      intents.deletesAsked.add(gone.id);
      const answer = await this.#insist(name, prng, `delete ${gone.id}`, (client) =>
        client.delete('instance', gone.id),
      );
      if (!(answer instanceof ApiError)) intents.deletesAccepted.add(gone.id);
      freed.push(gone.name);
    };

    const turn = async (): Promise<void> => {
      const which = own[prng.below(Math.max(1, own.length))];
      if (!which) return;
      const found = await this.#insist(name, prng, `get ${which.id}`, (client) => client.get('instance', which.id));
      if (found instanceof ApiError) return; // a control plane that has not heard of it yet
      const powerState = found.spec.powerState === 'running' ? 'stopped' : 'running';
      await this.#insist(name, prng, `${powerState === 'running' ? 'start' : 'stop'} ${which.id}`, (client) =>
        client.replace('instance', found.metadata.name, {
          metadata: {
            project: found.metadata.project,
            labels: found.metadata.labels,
            revision: found.metadata.revision,
          },
          spec: { ...found.spec, powerState },
        }),
      );
    };

    const { signal } = this.#tenantsOver;
    while (!signal.aborted) {
      await sleep(systemClock, prng.below(2 * betweenCallsMsMean), signal);
      if (signal.aborted) break;
      const draw = prng.below(100);
      if (draw < 45 && own.length < ownMax) await create();
      else if (draw < 70 && own.length > 0) await remove();
      else await turn();
    }
  }

  // ── watches ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Watches all instances, through one control plane after the other, going on where it was. */
  async #watcher(name: string, first: number, prng: Prng): Promise<void> {
    const { clients } = this.#options;
    const { signal } = this.#watchersOver;
    let from: { revision: number; epoch: string } | undefined;
    for (let turn = first; !signal.aborted; turn++) {
      const chosen = clients[turn % clients.length];
      if (chosen === undefined) return;
      const left = AbortSignal.any([signal, AbortSignal.timeout(3_000 + prng.below(15_000))]);
      let record: WatchRecord | undefined;
      try {
        if (from === undefined) {
          const { revision, epoch } = await chosen.client.list('instance', { limit: 1 });
          from = { revision, epoch: epoch ?? '' };
        }
        const at: { revision: number; epoch: string } = from;
        record = { by: name, server: chosen.name, after: at.revision, epoch: at.epoch, lines: [], end: '' };
        this.watches.push(record);
        for await (const change of chosen.client.watch('instance', { ...at }, left)) {
          const { type, revision } = change;
          record.lines.push({
            type,
            revision,
            ...(type === 'bookmark' ? {} : { name: change.resource.metadata.name }),
          });
          // Only a bookmark says that everything of a revision has been told.
          if (type === 'bookmark') at.revision = Math.max(at.revision, revision);
          this.seen.set(name, { ...at });
        }
        record.end = 'closed';
      } catch (error) {
        const code = error instanceof ApiError ? error.code : left.aborted ? 'left' : 'broken';
        if (record) record.end = code;
        if (code === 'Compacted') from = undefined;
      }
      await sleep(systemClock, 50 + prng.below(500), signal);
    }
  }
}

const betweenCallsMsMean = 150;
/** Codes after which asking again may help; `StoreFull` says that nothing was changed. */
const mayHelp = new Set<string>(['Unavailable', 'HostUnreachable', 'StoreFull', 'TooManyRequests', 'none']);

/** As simulated tenants ask; no tenant's room is taken, and none waits long for a guest to end. */
function drawSpec(prng: Prng): Partial<InstanceSpec> {
  return { ...drawInstance(prng), preemption: 'Never', stopGraceMs: prng.below(1_000) };
}
