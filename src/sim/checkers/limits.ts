// Not one of the numbered invariants: at no commit do more instances hold room than MAX_CONCURRENCY and CAPACITY_MAP allow, however they
// were placed. Counted here from allocations.

import type { Checker, Facts } from './checker.ts';

export function limitsChecker({ state, policy }: Facts): Checker {
  const { maxConcurrency, capacityMap = {} } = policy;
  const limited = maxConcurrency !== undefined || Object.keys(capacityMap).length > 0;
  return {
    invariant: 0,
    overRestore: 'after',
    onCommit({ events }) {
      if (!limited || !events.some(({ key, after }) => key.startsWith('allocations/') && after !== null))
        return undefined;
      const imageById = new Map<string, string>();
      for (const { metadata, spec } of state.list('instance')) imageById.set(metadata.id, spec.image);
      const byImage = new Map<string, number>();
      let all = 0;
      for (const { amounts, consumer } of state.list('allocation')) {
        if (consumer.kind !== undefined) continue;
        if (!Object.values(amounts).some((held) => Object.keys(held).some((name) => name !== 'DISK_GB'))) continue;
        const image = imageById.get(consumer.id) ?? '';
        byImage.set(image, (byImage.get(image) ?? 0) + 1);
        all += 1;
      }
      if (maxConcurrency !== undefined && all > maxConcurrency)
        return `${all} instances hold room, ${maxConcurrency} are allowed at once`;
      for (const [image, max] of Object.entries(capacityMap)) {
        const count = byImage.get(image) ?? 0;
        if (count > max) return `${count} instances of image ${image} hold room, ${max} are allowed at once`;
      }
      return undefined;
    },
  };
}
