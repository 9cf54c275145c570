// Outside group: what stands in the field `host` of an outside provider and of the allocations on it. No host has such
// a name, so that the scheduler never sees them.

const prefix = 'outside/';

/** The group of the outside provider with this id. */
export function outsideGroup(providerId: string): string {
  return prefix + providerId;
}

export function isOutsideGroup(host: string): boolean {
  return host.startsWith(prefix);
}
