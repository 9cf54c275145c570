// token: deletes tokens that open nothing any more: shares of instances that are gone, tokens whose owner is gone, and a day after their
// end those that have expired.

import { standingOf } from '../access/standing.ts';
import { revokeToken } from '../operations/access/token.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

/** Until then "berth token ls" shows that it has expired. */
export const expiredKeptMs = 86_400_000;

export const token: Controller = {
  name: 'token',
  watches: ['token', 'instance'],
  wakes({ kind, before, after }, snapshot) {
    if (after || !before) return [];
    if (before.kind === 'instance') return sharesIn(snapshot).of(before.metadata.id);
    if (kind !== 'token' || before.kind !== 'token') return [];
    const { id } = before.metadata;
    return [...snapshot.list('token')].filter(({ value }) => value.spec.owner?.id === id).map(({ key }) => key);
  },
  keys: (snapshot) => keysOfKind(snapshot, 'token'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('token', key);
    if (!entry) return emptyPlan;
    const { metadata, spec } = entry.value;
    const end = (): Plan => revokeToken(snapshot, { name: metadata.name }).plan;
    const { share, project = '', expiresAtMs } = spec;
    if (share && !snapshot.instanceById(share.instanceId)) {
      // Its deletion may be in progress and still fail: then this Plan fails as well.
      const instanceKey = keys.instance(project, share.instance);
      const ifRevision = snapshot.get('instance', instanceKey)?.revision ?? 0;
      return { ...end(), conditions: [{ key: instanceKey, ifRevision }] };
    }
    if (standingOf(entry.value, ctx.nowMs, (owner) => snapshot.get('token', owner)) === 'revoked') return end();
    return expiresAtMs !== undefined && expiresAtMs + expiredKeptMs <= ctx.nowMs ? end() : emptyPlan;
  },
};

/** Keys of the shares of each instance. */
class Shares implements View {
  readonly #keys = new Map<string, Set<string>>();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('token')) this.apply({ kind: 'token', key, before: null, after: value });
  }

  of(instanceId: string): Iterable<string> {
    return [...(this.#keys.get(instanceId) ?? [])];
  }

  apply({ kind, key, before, after }: RecordChange): void {
    if (kind !== 'token') return;
    const was = before?.kind === 'token' ? before.spec.share?.instanceId : undefined;
    const is = after?.kind === 'token' ? after.spec.share?.instanceId : undefined;
    if (was === is) return;
    if (was !== undefined) this.#remove(was, key);
    if (is !== undefined) this.#keys.set(is, (this.#keys.get(is) ?? new Set()).add(key));
  }

  #remove(instanceId: string, key: string): void {
    const known = this.#keys.get(instanceId);
    known?.delete(key);
    if (known?.size === 0) this.#keys.delete(instanceId);
  }
}

const sharesIn = defineView((snapshot) => new Shares(snapshot));
