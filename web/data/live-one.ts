// LiveOne: one resource, kept up to date.

import { ApiError } from '../../src/api/errors.ts';
import type { Kind, ResourceByKind } from '../../src/api/resources/index.ts';
import { client } from './client.ts';
import { type Change, Followed, type Source, type Standing } from './followed.ts';
import type { From } from './stream.ts';

export interface Named {
  /** A name or an id. */
  readonly name: string;
  /** Undefined: a resource of the fleet, or of any project. */
  readonly project: string | undefined;
}

export interface SeenOne<T> {
  /** Undefined: there is none, or the user may not read it. */
  readonly found: T | undefined;
  readonly revision: number;
  readonly standing: Standing;
}

export class LiveOne<K extends Kind> implements Source {
  readonly kind: K;
  readonly followed = new Followed(this);
  readonly #named: Named;
  #found: ResourceByKind[K] | undefined;
  #seen: SeenOne<ResourceByKind[K]> = { found: undefined, revision: 0, standing: { state: 'loading' } };

  constructor(kind: K, named: Named) {
    this.kind = kind;
    this.#named = named;
  }

  readonly seen = (): SeenOne<ResourceByKind[K]> => this.#seen;

  async load(): Promise<From> {
    const { revision, epoch } = await client.list(this.kind, { offset: 0, order: 'newest', limit: 1 });
    this.#found = await this.#read(); // it may be newer: the watch repeats what it has already
    return { revision, epoch };
  }

  async #read(): Promise<ResourceByKind[K] | undefined> {
    const { name, project } = this.#named;
    try {
      return await client.get(this.kind, name, project === undefined ? {} : { project });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'NotFound')) throw error;
      if (project !== undefined) return undefined;
      return (await client.list(this.kind, { offset: 0, limit: 1, words: `name=${name}` })).items[0];
    }
  }

  apply({ type, resource }: Change): void {
    if (!this.#isIt(resource.metadata)) return;
    if (type === 'delete') this.#found = undefined;
    else if (this.#found === undefined || this.#found.metadata.revision < resource.metadata.revision)
      this.#found = resource as ResourceByKind[K]; // the stream hands out those of the kind
  }

  #isIt(metadata: { readonly name: string; readonly project: string; readonly id?: string }): boolean {
    const known = this.#found?.metadata;
    if (known) return metadata.name === known.name && metadata.project === known.project;
    const { name, project } = this.#named;
    return (metadata.name === name || metadata.id === name) && (!project || metadata.project === project);
  }

  clear(): void {
    this.#found = undefined;
  }

  tell(): void {
    const { revision, standing } = this.followed;
    this.#seen = { found: this.#found, revision, standing };
  }
}
