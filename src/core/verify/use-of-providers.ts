// For each provider: no more is held than its capacity, and the running count equals the sum of its allocations.

import { overUse } from '../ledger/ledger.ts';
import type { Provider } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Rule } from './fault.ts';

export const useOfProviders: Rule = function* (snapshot) {
  const sums = new Map<string, Map<string, number>>();
  for (const group of groupsOf(snapshot)) {
    for (const { amounts } of snapshot.allocationsHeldOnHost(group)) {
      for (const [providerId, held] of Object.entries(amounts)) {
        const sum = sums.get(providerId) ?? new Map<string, number>();
        sums.set(providerId, sum);
        for (const [resourceClass, amount] of Object.entries(held))
          sum.set(resourceClass, (sum.get(resourceClass) ?? 0) + amount);
      }
    }
    yield undefined;
  }
  for (const { providerId, resourceClass, used, capacity } of overUse(snapshot)) {
    const provider = snapshot.get('provider', `providers/${providerId}`)?.value;
    yield {
      key: `over-use ${providerId} ${resourceClass}`,
      code: 'OverUse',
      subject: provider === undefined ? 'host ?' : subjectOf(provider),
      ...(provider ? { host: provider.host } : {}),
      message: `${used} ${resourceClass} are held of ${capacity}`,
      cause: 'its inventory, reserve or ratio was set below what is in use, or it was measured again',
    };
  }
  for (const { value: provider } of snapshot.list('provider')) {
    const sum = sums.get(provider.id) ?? new Map<string, number>();
    const used = snapshot.usedBy(provider.id);
    const wrong = [...new Set([...sum.keys(), ...used.keys()])].find(
      (name) => (sum.get(name) ?? 0) < (used.get(name) ?? 0),
    );
    if (wrong === undefined) yield undefined;
    else
      yield {
        key: `miscounted ${provider.id} ${wrong}`,
        code: 'Miscounted',
        subject: subjectOf(provider),
        host: provider.host,
        message: `${used.get(wrong) ?? 0} ${wrong} are counted as used, its allocations hold ${sum.get(wrong) ?? 0}`,
        cause:
          'an allocation of another host holds room of this one, or the count is wrong: restart the control plane and report it',
      };
  }
};

/** Every name that allocations are indexed under: hosts, and outside providers. */
function* groupsOf(snapshot: Snapshot): Generator<string> {
  for (const { value } of snapshot.list('host')) yield value.metadata.name;
  for (const { value } of snapshot.list('provider')) if (value.outside !== undefined) yield value.host;
}

function subjectOf({ host, outside }: Provider): string {
  return outside === undefined ? `host ${host}` : `outside provider ${outside.name}`;
}
