// FleetMapData: all hosts with the properties that the map shows. States follow each change; claims are refreshed periodically.

import { useSyncExternalStore } from 'react';
import type { FleetMap } from '../../src/api/lists/fleet-map.ts';
import type { Host } from '../../src/api/resources/host.ts';
import { type HostStateName, hostStateName } from '../../src/api/resources/host-state.ts';
import { client } from './client.ts';
import { type Change, Followed, type Source, type Standing } from './followed.ts';
import type { From } from './stream.ts';

export interface ClassShare {
  readonly used: number;
  readonly capacity: number;
}

export interface MapRow {
  readonly name: string;
  readonly pool: string;
  readonly state: HostStateName;
  /** The labels that the map groups by. */
  readonly labels: Readonly<Record<string, string>>;
  readonly consumers: number;
  readonly classes: Readonly<Record<string, ClassShare>>;
  /** What its guests use now; absent: not measured. */
  readonly use?: { readonly milliCpus: number; readonly memoryMiB: number };
}

export interface SeenMap {
  readonly rows: readonly MapRow[];
  readonly revision: number;
  readonly standing: Standing;
}

const labelsShown = ['zone', 'rack'] as const;
const rereadMsMin = 5_000;
const shareOfTime = 0.02;

class FleetMapData implements Source {
  readonly kind = 'host';
  readonly followed = new Followed(this);
  #rows = new Map<string, MapRow>();
  #isNew = false;
  #rereading: ReturnType<typeof setTimeout> | undefined;
  #seen: SeenMap = { rows: [], revision: 0, standing: { state: 'loading' } };

  readonly seen = (): SeenMap => this.#seen;

  async load(): Promise<From> {
    const map = await this.#read(0);
    this.#rows = new Map(rowsOf(map).map((row) => [row.name, row]));
    this.#isNew = true;
    return { revision: map.revision, epoch: map.epoch };
  }

  async #read(maxAgeMs: number): Promise<FleetMap> {
    const startedMs = performance.now();
    const map = await client.fleetMap({ labels: labelsShown.join(), maxAgeMs });
    this.#rereadAfter(Math.max(rereadMsMin, (performance.now() - startedMs) / shareOfTime));
    return map;
  }

  /** Hidden pages and pages without a connection keep waiting. */
  #rereadAfter(delayMs: number): void {
    clearTimeout(this.#rereading);
    this.#rereading = setTimeout(() => {
      if (document.visibilityState !== 'visible' || this.followed.standing.state !== 'live')
        return this.#rereadAfter(rereadMsMin);
      this.#read(rereadMsMin).then(
        (map) => this.#takeClaims(map),
        () => this.#rereadAfter(rereadMsMin),
      );
    }, delayMs);
  }

  /** All else came with the changes, which may be newer than this answer. */
  #takeClaims(map: FleetMap): void {
    for (const { name, consumers, classes, use } of rowsOf(map)) {
      const row = this.#rows.get(name);
      if (row === undefined) continue;
      const { use: _before, ...others } = row;
      this.#rows.set(name, { ...others, consumers, classes, ...(use === undefined ? {} : { use }) });
    }
    this.#isNew = true;
    this.followed.changed();
  }

  apply(change: Change): void {
    this.#isNew = true;
    const { name } = change.resource.metadata;
    if (change.type === 'delete') return void this.#rows.delete(name);
    const host = change.resource as Host; // the stream hands out those of the kind
    const { consumers = 0, classes = {}, use } = this.#rows.get(name) ?? {};
    this.#rows.set(name, {
      name,
      pool: host.spec.pool ?? 'default',
      state: hostStateName(host),
      labels: labelsOf((label) => host.metadata.labels[label]),
      consumers,
      classes,
      ...(use === undefined ? {} : { use }),
    });
  }

  clear(): void {
    clearTimeout(this.#rereading);
    this.#rows.clear();
    this.#isNew = true;
  }

  tell(): void {
    const { revision, standing } = this.followed;
    this.#seen = { rows: this.#isNew ? [...this.#rows.values()] : this.#seen.rows, revision, standing };
    this.#isNew = false;
  }
}

function rowsOf({ names, pools, states, labels, consumers, classes, use }: FleetMap): MapRow[] {
  const columns = Object.entries(classes);
  return names.map((name, i) => ({
    name,
    pool: pools[i] ?? '',
    state: states[i] ?? 'Unknown',
    labels: labelsOf((label) => labels[label]?.[i] ?? undefined),
    consumers: consumers[i] ?? 0,
    classes: Object.fromEntries(
      columns.flatMap(([column, { used, capacity }]) =>
        capacity[i] || used[i] ? [[column, { used: used[i] ?? 0, capacity: capacity[i] ?? 0 }]] : [],
      ),
    ),
    ...useOf(use?.milliCpus[i], use?.memoryMiB[i]),
  }));
}

function useOf(milliCpus: number | null | undefined, memoryMiB: number | null | undefined): Pick<MapRow, 'use'> {
  return typeof milliCpus === 'number' && typeof memoryMiB === 'number' ? { use: { milliCpus, memoryMiB } } : {};
}

function labelsOf(of: (label: string) => string | undefined): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const label of labelsShown) {
    const value = of(label);
    if (value !== undefined) labels[label] = value;
  }
  return labels;
}

const data = new FleetMapData();

export function useFleetMap(): SeenMap & { retry(): void } {
  const seen = useSyncExternalStore(data.followed.follow, data.seen);
  return { ...seen, retry: data.followed.retry };
}
