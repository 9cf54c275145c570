// The time of a line, as it was received by the host. Pure.

export type LogTime = 'off' | 'clock' | 'since';

/** `02:00:01.250`, of the zone of the browser; or `+1.250 s` since `firstMs`. */
export function logTime(atMs: number | undefined, how: LogTime, firstMs: number | undefined): string {
  if (atMs === undefined || how === 'off') return '';
  if (how === 'since') return `+${((atMs - (firstMs ?? atMs)) / 1000).toFixed(3)} s`;
  const at = new Date(atMs);
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0'));
  return `${clock.join(':')}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}
