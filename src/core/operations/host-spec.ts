// Checks of a host's spec that the schema cannot express: that its parts agree. Throws `InvalidRequest` naming the
// field.

import { ApiError } from '../../api/errors.ts';
import type { HostSpec } from '../../api/resources/host.ts';
import { assertKnownClasses } from './known-classes.ts';

export function assertHostSpec(spec: HostSpec): void {
  assertClasses(spec);
  assertUnits(spec);
  assertDifferent(
    spec.providers ?? [],
    ({ name }) => name,
    'providers',
    (name) => `provider "${name}" is given twice`,
  );
  assertDifferent(
    spec.taints ?? [],
    ({ key, effect }) => `${key}:${effect}`,
    'taints',
    (taint) => `the taint ${taint} is listed twice`,
  );
}

function assertClasses({ reserved = {}, allocationRatios, inventory = {}, providers = [] }: HostSpec): void {
  assertKnownClasses(reserved, 'spec.reserved');
  assertKnownClasses(allocationRatios, 'spec.allocationRatios');
  assertKnownClasses(inventory, 'spec.inventory');
  for (const [i, { amounts }] of providers.entries()) assertKnownClasses(amounts, `spec.providers[${i}].amounts`);
}

function assertUnits({ inventory }: HostSpec): void {
  for (const [resourceClass, { minUnit = 1, maxUnit, stepSize = 1 }] of Object.entries(inventory ?? {})) {
    const field = `spec.inventory.${resourceClass}`;
    if (maxUnit !== undefined && minUnit > maxUnit) {
      throw new ApiError('InvalidRequest', `${field}: minUnit ${minUnit} is more than maxUnit ${maxUnit}`, {
        field: `${field}.minUnit`,
      });
    }
    if (maxUnit !== undefined && Math.ceil(minUnit / stepSize) * stepSize > maxUnit) {
      throw new ApiError('InvalidRequest', `${field}: no multiple of ${stepSize} lies from ${minUnit} to ${maxUnit}`, {
        field: `${field}.stepSize`,
      });
    }
  }
}

function assertDifferent<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
  field: string,
  message: (key: string) => string,
): void {
  const seen = new Set<string>();
  for (const [i, item] of items.entries()) {
    const key = keyOf(item);
    if (seen.has(key)) throw new ApiError('InvalidRequest', message(key), { field: `spec.${field}[${i}]` });
    seen.add(key);
  }
}
