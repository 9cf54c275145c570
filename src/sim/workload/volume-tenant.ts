// A tenant of volumes: creates, grows, snapshots, copies and deletes volumes, and attaches them to instances that come and go.

import { ApiError } from '../../api/errors.ts';
import type { VolumeSpec } from '../../api/resources/volume.ts';
import { keyLabel } from '../intents.ts';
import { type Caller, type Owned, pickOne, textOf } from './caller.ts';
import { drawInstance } from './draw-instance.ts';

/** The same limit for its instances. */
const volumesMax = 6;

export class VolumeTenant {
  readonly #caller: Caller;
  /** Names of volumes. */
  readonly #volumes: string[] = [];
  readonly #instances: Owned[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(4 * parts.scenario.betweenCallsMsMean)) {
      const volume = pickOne(this.#volumes, prng);
      const instance = pickOne(this.#instances, prng);
      const draw = prng.below(100);
      if (volume === undefined || (draw < 20 && this.#volumes.length < volumesMax)) await this.#createSomewhere();
      else if (draw < 40 && this.#instances.length < volumesMax) await this.#createInstance();
      else if (draw < 60 && instance !== undefined) await this.#attachOrDetach(instance);
      else if (draw < 68) await this.#grow(volume);
      else if (draw < 76) await this.#snapshot(volume);
      else if (draw < 80) await this.#copy(volume);
      else if (draw < 90) await this.#deleteInstance();
      else await this.#delete(volume);
    }
    while (this.#instances.length > 0 && prng.chance(2, 3)) await this.#deleteInstance();
  }

  /** On any host, or on one that may not exist. */
  #createSomewhere(): Promise<void> {
    const { prng, parts } = this.#caller;
    return this.#create(prng.chance(1, 4) ? { host: `h${1 + prng.below(parts.scenario.hosts.length)}` } : {});
  }

  async #create(spec: Pick<VolumeSpec, 'host' | 'source'>): Promise<void> {
    const key = `${this.#caller.name}-v${++this.#keys}`;
    const body = { metadata: { name: key }, spec: { sizeGiB: 1 + this.#caller.prng.below(3), ...spec } };
    const answer = await this.#caller.insist((client) => client.create('volume', body, { idempotencyKey: key }));
    if (this.#note(`create ${key}`, answer)) this.#volumes.push(key);
  }

  #grow(volume: string): Promise<void> {
    return this.#change(volume, 'grow', (spec) => ({ ...spec, sizeGiB: spec.sizeGiB + 1 }));
  }

  #snapshot(volume: string): Promise<void> {
    return this.#change(volume, 'snapshot', (spec) => ({
      ...spec,
      snapshots: spec.snapshots.length > 1 ? spec.snapshots.slice(1) : [...spec.snapshots, `s${++this.#keys}`],
    }));
  }

  async #copy(volume: string): Promise<void> {
    const found = await this.#caller.insist((client) => client.get('volume', volume));
    const snapshot = found instanceof ApiError ? undefined : pickOne(found.spec.snapshots, this.#caller.prng);
    if (snapshot !== undefined) await this.#create({ source: { volume, snapshot } });
  }

  async #delete(volume: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.delete('volume', volume));
    if (this.#note(`delete ${volume}`, answer)) this.#volumes.splice(this.#volumes.indexOf(volume), 1);
  }

  async #change(volume: string, what: string, wanted: (spec: VolumeSpec) => VolumeSpec): Promise<void> {
    const found = await this.#caller.insist((client) => client.get('volume', volume));
    if (found instanceof ApiError) return;
    const { labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: wanted(found.spec) };
    this.#note(`${what} ${volume}`, await this.#caller.insist((client) => client.replace('volume', volume, body)));
  }

  async #createInstance(): Promise<void> {
    const { prng, name } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    const first = pickOne(this.#volumes, prng);
    const wanted = new Set([first, prng.chance(1, 3) ? pickOne(this.#volumes, prng) : undefined]);
    const spec = {
      ...drawInstance(prng),
      volumes: [...wanted].flatMap((each) => (each === undefined ? [] : [{ name: each }])),
    };
    if (spec.volumes.length === 0) return;
    const made = await this.#caller.createInstance({
      key,
      body: { metadata: { name: key, labels: { [keyLabel]: key } }, spec },
      // A volume may be attached elsewhere, on another host, gone, or unknown yet to this control plane.
      mayRefuse: (code) => code === 'Conflict' || code === 'InvalidRequest',
    });
    if (made) this.#instances.push(made);
  }

  async #attachOrDetach({ id }: Owned): Promise<void> {
    const { prng } = this.#caller;
    const found = await this.#caller.insist((client) => client.get('instance', id));
    if (found instanceof ApiError) return;
    const { volumes: had = [], ...others } = found.spec;
    const volume = pickOne(this.#volumes, prng);
    const kept = prng.chance(1, 2) ? had.slice(1) : had;
    const next =
      kept === had && volume !== undefined ? [...had.filter((each) => each.name !== volume), { name: volume }] : kept;
    const powerState = prng.chance(1, 6) ? ('stopped' as const) : ('running' as const);
    const spec = { ...others, powerState, ...(next.length === 0 ? {} : { volumes: next }) };
    const { name, labels, revision } = found.metadata;
    const answer = await this.#caller.insist((client) =>
      client.replace('instance', name, { metadata: { labels, revision }, spec }),
    );
    this.#note(`${next === kept ? 'detach' : 'attach'} ${name}`, answer);
  }

  async #deleteInstance(): Promise<void> {
    const [gone] = this.#instances.splice(this.#caller.prng.below(this.#instances.length), 1);
    if (gone) await this.#caller.deleteInstance(gone.id);
  }

  /** Counts and traces an answer. False when it is a refusal. */
  #note(what: string, answer: Parameters<typeof textOf>[0]): boolean {
    this.#caller.trace(() => `${what} -> ${textOf(answer)}`);
    if (answer instanceof ApiError) return false;
    this.#caller.parts.tally.hit(`volume-${what.slice(0, what.indexOf(' '))}`);
    return true;
  }
}
