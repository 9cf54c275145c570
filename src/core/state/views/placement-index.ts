// Placement index: providers and consumers as the Placement API names them, by UUID and name. Made by the first request
// of that API; until then it costs nothing.

import { sha256 } from '../../../base/sha256.ts';
import { keys } from '../keys.ts';
import type { Allocation, AnyRecord, Provider } from '../records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../snapshot.ts';

export const placementIndexOf = defineView((snapshot) => new PlacementIndex(snapshot));

/** A UUID for what has none of its own: always the same for the same id. */
export function uuidOf(id: string): string {
  const hex = sha256(`berth placement ${id}`);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export class PlacementIndex implements View {
  readonly #snapshot: Snapshot;
  /** Provider ids by UUID, in order of creation as far as this process saw it. */
  readonly #idByUuid = new Map<string, string>();
  /** Of our own. */
  readonly #uuidById = new Map<string, string>();
  readonly #idByName = new Map<string, string>();
  readonly #children = new Map<string, Set<string>>();
  readonly #byAggregate = new Map<string, Set<string>>();
  readonly #withTrait = new Map<string, Set<string>>();
  readonly #withClass = new Map<string, Set<string>>();
  /** Our own consumers, which have ids that are no UUIDs. */
  readonly #consumerByUuid = new Map<string, string>();
  /** Consumer ids by the project that the Placement API shows. */
  readonly #byProject = new Map<string, Set<string>>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const providers = [...snapshot.list('provider')].map(({ value }) => value);
    providers.sort((a, b) => (a.outside?.createdAtMs ?? 0) - (b.outside?.createdAtMs ?? 0));
    for (const provider of providers) this.#addProvider(provider);
    for (const { value } of snapshot.list('allocation')) this.#addConsumer(value);
    for (const { value } of snapshot.list('outsideConsumer')) put(this.#byProject, value.project, value.id);
  }

  /** Every provider id. */
  ids(): Iterable<string> {
    return this.#idByUuid.values();
  }

  idOf(uuid: string): string | undefined {
    return this.#idByUuid.get(uuid);
  }

  uuidOf(providerId: string): string {
    return this.#uuidById.get(providerId) ?? providerId;
  }

  idNamed(name: string): string | undefined {
    return this.#idByName.get(name);
  }

  childrenOf(providerId: string): Iterable<string> {
    return this.#children.get(providerId) ?? [];
  }

  inAggregate(uuid: string): Iterable<string> {
    return this.#byAggregate.get(uuid) ?? [];
  }

  withTrait(trait: string): ReadonlySet<string> {
    return this.#withTrait.get(trait) ?? none;
  }

  /** Ids of the providers that have an inventory of the class. */
  withClass(resourceClass: string): ReadonlySet<string> {
    return this.#withClass.get(resourceClass) ?? none;
  }

  /** Classes of which some provider has an inventory. */
  classes(): Iterable<string> {
    return this.#withClass.keys();
  }

  traits(): Iterable<string> {
    return this.#withTrait.keys();
  }

  provider(id: string): Provider | undefined {
    return this.#snapshot.get('provider', keys.provider(id))?.value;
  }

  /** The root of the provider's tree; itself, when its parent is gone. */
  rootOf(id: string): string {
    let at = id;
    for (let depth = 0; depth < depthMax; depth++) {
      const parent = this.provider(at)?.parent ?? null;
      if (parent === null || this.provider(parent) === undefined) return at;
      at = parent;
    }
    return at;
  }

  /** The provider and everything below it. */
  subtreeOf(id: string): Set<string> {
    const all = new Set([id]);
    for (const each of all) for (const child of this.childrenOf(each)) all.add(child);
    return all;
  }

  /** The id of the consumer with this UUID, ours or an outside one. */
  consumerOf(uuid: string): string {
    return this.#consumerByUuid.get(uuid) ?? uuid;
  }

  consumersIn(project: string): Iterable<string> {
    return this.#byProject.get(project) ?? none;
  }

  apply({ kind, before, after, onlyHeld }: RecordChange): void {
    if (onlyHeld) return;
    if (kind === 'provider') this.#applyProvider(before, after);
    else if (kind === 'allocation') {
      if (before?.kind === 'allocation' && after?.kind !== 'allocation') this.#removeConsumer(before);
      if (after?.kind === 'allocation') this.#addConsumer(after);
    } else if (kind === 'outsideConsumer') {
      if (before?.kind === 'outsideConsumer') take(this.#byProject, before.project, before.id);
      if (after?.kind === 'outsideConsumer') put(this.#byProject, after.project, after.id);
    }
  }

  #applyProvider(before: AnyRecord | null, after: AnyRecord | null): void {
    if (before?.kind === 'provider') this.#removeParts(before);
    if (before?.kind === 'provider' && after === null) this.#forget(before);
    if (after?.kind === 'provider') this.#addProvider(after);
  }

  #addProvider(provider: Provider): void {
    const { id, parent, aggregates, traits, inventories } = provider;
    const uuid = provider.outside ? id : uuidOf(id);
    this.#idByUuid.set(uuid, id);
    if (uuid !== id) this.#uuidById.set(id, uuid);
    this.#idByName.set(nameOf(provider), id);
    if (parent !== null) put(this.#children, parent, id);
    for (const aggregate of aggregates) put(this.#byAggregate, aggregate, id);
    for (const trait of traits) put(this.#withTrait, trait, id);
    for (const resourceClass in inventories) put(this.#withClass, resourceClass, id);
  }

  #removeParts(provider: Provider): void {
    const { id, parent, aggregates, traits, inventories } = provider;
    if (this.#idByName.get(nameOf(provider)) === id) this.#idByName.delete(nameOf(provider));
    if (parent !== null) take(this.#children, parent, id);
    for (const aggregate of aggregates) take(this.#byAggregate, aggregate, id);
    for (const trait of traits) take(this.#withTrait, trait, id);
    for (const resourceClass in inventories) take(this.#withClass, resourceClass, id);
  }

  #forget({ id }: Provider): void {
    this.#idByUuid.delete(this.uuidOf(id));
    this.#uuidById.delete(id);
  }

  #addConsumer({ consumer: { kind, id, project } }: Allocation): void {
    if (kind === 'outside') return;
    this.#consumerByUuid.set(uuidOf(id), id);
    put(this.#byProject, project, id);
  }

  #removeConsumer({ consumer: { kind, id, project } }: Allocation): void {
    if (kind === 'outside' || this.#snapshot.allocationsOfConsumer(id).length > 0) return;
    this.#consumerByUuid.delete(uuidOf(id));
    take(this.#byProject, project, id);
  }
}

/** Of a host: its name; of a part of a host: after the host's. */
export function nameOf({ id, host, parent, outside }: Provider): string {
  if (outside) return outside.name;
  return parent === null ? host : `${host}/${id.startsWith(`${parent}-`) ? id.slice(parent.length + 1) : id}`;
}

/** Far deeper than any tree; a loop cannot be made. */
const depthMax = 1_000;
const none: ReadonlySet<string> = new Set();

function put(sets: Map<string, Set<string>>, name: string, id: string): void {
  const known = sets.get(name);
  if (known) known.add(id);
  else sets.set(name, new Set([id]));
}

function take(sets: Map<string, Set<string>>, name: string, id: string): void {
  const known = sets.get(name);
  if (known?.delete(id) && known.size === 0) sets.delete(name);
}
