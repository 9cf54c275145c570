// Times and amounts as people read them.

const seconds = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const;

/** `3 min`, `2 d`; under a second: `0 s`. */
export function spanText(ms: number): string {
  const total = Math.max(0, Math.round(ms / 1000));
  for (const [length, unit] of seconds) if (total >= length) return `${Math.floor(total / length)} ${unit}`;
  return `${total} s`;
}

export function agoText(atMs: number, nowMs: number): string {
  return nowMs - atMs < 1_000 ? 'now' : `${spanText(nowMs - atMs)} ago`;
}

/** With the zone, for a tooltip. */
export function exactTime(atMs: number): string {
  return exact.format(atMs);
}

/** Making one takes longer than a row of a list. */
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** Of MEMORY_MB: `512 MiB`, `1.5 GiB`. */
export function memoryText(mebibytes: number): string {
  return mebibytes < 1024 ? `${mebibytes} MiB` : `${trimmed(mebibytes / 1024)} GiB`;
}

/** Of a resource class: `2 VCPU`, `1.5 GiB`, `40 GB`. */
export function amountText(resourceClass: string, amount: number): string {
  if (resourceClass === 'MEMORY_MB') return memoryText(amount);
  return resourceClass === 'DISK_GB' ? `${amount} GB` : `${amount} ${resourceClass}`;
}

/** A resource class as people call it. */
export function classText(resourceClass: string): string {
  return { MEMORY_MB: 'memory', DISK_GB: 'disk' }[resourceClass] ?? resourceClass;
}

/** `61 % of 256 GiB`; nothing to have: a dash. */
export function shareText(used: number, total: number, amount: (value: number) => string): string {
  return total <= 0 ? '–' : `${Math.round((100 * used) / total)} % of ${amount(total)}`;
}

function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '');
}
