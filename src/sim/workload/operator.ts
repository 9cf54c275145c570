// The operator: makes the images and the quota, and changes hosts.

import type { Prng } from '../../base/prng.ts';
import { ApiError } from '../../api/errors.ts';
import type { HostSpec } from '../../api/resources/host.ts';
import type { Principal } from '../../core/access/principal.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import { drawHostLabels, drawHostRules } from '../rules.ts';
import { type Caller, textOf } from './caller.ts';
import { imageNames } from './draw-instance.ts';

export class Operator {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async prepare(): Promise<void> {
    for (const name of imageNames) {
      const body = { metadata: { name }, spec: { source: `https://images.example/${name}.qcow2` } };
      await this.#caller.insist((client) => client.create('image', body, { idempotencyKey: `image-${name}` }));
    }
    const { quota } = this.#caller.parts.scenario;
    if (quota === undefined) return;
    const body = { metadata: { name: 'default' }, spec: { quota: { INSTANCES: quota } } };
    await this.#caller.insist((client) => client.create('project', body, { idempotencyKey: 'project-default' }));
  }

  /** A token with a role in a project, as the principal that bears it. */
  async issueToken(
    name: string,
    { role, project }: { readonly role: string; readonly project: string },
  ): Promise<Principal> {
    const body = { metadata: { name, labels: {} }, spec: { description: '', role, project, neverExpires: true } };
    const issued = await this.#caller.insist((client) => client.createToken(body));
    // After a lost answer it is there already, but a control plane may not know it yet.
    let token = issued instanceof ApiError ? issued : issued.resource;
    while (token instanceof ApiError) {
      if (!(await this.#caller.nextTurn(500))) throw token;
      token = await this.#caller.insist((client) => client.get('token', name));
    }
    return { kind: 'token', name, uid: token.metadata.id, tokenId: token.status.tokenId };
  }

  /** Pauses a host, or resumes it. Each of these resolves to whether the host existed and no other change came first. */
  pause(host: string): Promise<boolean> {
    return this.#change(host, (spec) => ({ ...spec, paused: !spec.paused }));
  }

  /** Reserves a random part of a host for the host itself. */
  reserve(host: string): Promise<boolean> {
    return this.#change(host, (spec) => ({
      ...spec,
      reserved: { VCPU: this.#prng.below(3), MEMORY_MB: this.#prng.below(2048) },
    }));
  }

  /** Says that a silent host is down. Refused as long as it is not known to be silent. */
  async declareDown(host: string): Promise<boolean> {
    const answer = await this.#caller.insist((client) => client.declareHostDown(host, { reason: 'no power' }));
    this.#caller.trace(() => `declare ${host} down -> ${textOf(answer)}`);
    return !(answer instanceof ApiError);
  }

  /** Changes which instances a host takes. */
  rule(host: string): Promise<boolean> {
    const { projects } = this.#caller.parts.scenario;
    return this.#change(
      host,
      (spec) => drawHostRules(this.#prng, spec, projects),
      (labels) => drawHostLabels(this.#prng, labels),
    );
  }

  get #prng(): Prng {
    return this.#caller.prng;
  }

  async #change(
    host: string,
    specOf: (spec: HostSpec) => HostSpec,
    labelsOf: (labels: Labels) => Labels = (labels) => labels,
  ): Promise<boolean> {
    const found = await this.#caller.insist((client) => client.get('host', host));
    if (found instanceof ApiError) return false; // the host has not joined yet
    const answer = await this.#caller.insist((client) =>
      client.replace('host', host, {
        metadata: { labels: labelsOf(found.metadata.labels), revision: found.metadata.revision },
        spec: specOf(found.spec),
      }),
    );
    this.#caller.trace(() => `${host} -> ${textOf(answer)}`);
    return !(answer instanceof ApiError);
  }
}
