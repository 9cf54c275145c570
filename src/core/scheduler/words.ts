// Words: amounts and lists in messages.

import { gpuClass, gpuWhole } from '../../api/resources/host-rules.ts';

/** `2 CPUs`, `512 MiB memory`, `10 GiB disk`, `3 CUSTOM_LICENSE`. */
export function amountWords(resourceClass: string, amount: number): string {
  switch (resourceClass) {
    case 'VCPU':
      return `${amount} CPU${amount === 1 ? '' : 's'}`;
    case 'MEMORY_MB':
      return amount >= 1024 && amount % 1024 === 0 ? `${amount / 1024} GiB memory` : `${amount} MiB memory`;
    case 'DISK_GB':
      return `${amount} GiB disk`;
    case gpuClass:
      return amount % gpuWhole === 0
        ? `${amount / gpuWhole} GPU${amount === gpuWhole ? '' : 's'}`
        : `${amount / gpuWhole} of a GPU`;
    default:
      return `${amount} ${resourceClass}`;
  }
}

/** `h1, h2, h3 and 7 more`. */
export function listed(names: readonly string[], max = 3): string {
  const shown = [...names].sort().slice(0, max);
  return names.length > max ? `${shown.join(', ')} and ${names.length - max} more` : shown.join(', ');
}
