// Parses amounts, times, ports and labels, and formats amounts and times.

import type { GuestPort, PublishedPort } from '../../api/resources/guest.ts';
import { usageError } from '../exit-codes.ts';

const mebibytes: Readonly<Record<string, number>> = {
  m: 1,
  mi: 1,
  mib: 1,
  g: 1024,
  gi: 1024,
  gib: 1024,
  t: 1024 ** 2,
  ti: 1024 ** 2,
  tib: 1024 ** 2,
};

/** From api/resources/instance.ts and volume.ts, which would load schemas; users know the flag. */
const memoryMiBMin = 16;
const memoryMiBMax = 67_108_864;
const diskGiBMax = 1_048_576;
const volumeGiBMax = 65_536;

/** `512MiB`, `1.5GiB` → MiB. A number without a unit is refused as ambiguous. */
export function parseMemoryMiB(text: string, flag = '--memory'): number {
  const amount = parseMebibytes(text);
  if (amount === undefined || !Number.isInteger(amount)) {
    throw usageError(
      `${flag} cannot be "${text}"`,
      'write it in whole MiB, with its unit (MiB, GiB, TiB): 512MiB, 1GiB',
    );
  }
  if (amount < memoryMiBMin || amount > memoryMiBMax)
    throw usageError(`${flag} cannot be "${text}"`, `from ${memory(memoryMiBMin)} to ${memory(memoryMiBMax)}`);
  return amount;
}

/** A number of bytes per second: `512KiB`, `100MiB`, `1GiB`. */
export function parseBandwidth(flag: string, text: string): number {
  const kibibytes = /^(\d{1,9}) ?k(?:i|ib)?$/i.exec(text)?.[1];
  const bytesPerSecond =
    kibibytes === undefined ? (parseMebibytes(text) ?? Number.NaN) * 1024 ** 2 : Number(kibibytes) * 1024;
  if (!Number.isInteger(bytesPerSecond))
    throw usageError(`${flag} cannot be "${text}"`, 'write an amount per second, with its unit: 512KiB, 100MiB, 1GiB');
  if (bytesPerSecond < 1024 || bytesPerSecond > 2 ** 40)
    throw usageError(`${flag} cannot be "${text}"`, 'from 1 KiB to 1 TiB per second');
  return bytesPerSecond;
}

/** `10GiB`, `1TiB` → GiB; `0`: as large as the image. */
export function parseDiskGiB(text: string, flag = '--disk'): number {
  const amount = text === '0' ? 0 : (parseMebibytes(text) ?? Number.NaN) / 1024;
  if (!Number.isInteger(amount) || amount < 0) {
    throw usageError(
      `${flag} cannot be "${text}"`,
      'write whole GiB with the unit: 10GiB, 1TiB; or 0 for the size of the image',
    );
  }
  if (amount > diskGiBMax) throw usageError(`${flag} cannot be "${text}"`, `at most ${memory(diskGiBMax * 1024)}`);
  return amount;
}

/** The size of a volume: `10GiB` → GiB, at least one. */
export function parseGiB(flag: string, text: string): number {
  const amount = (parseMebibytes(text) ?? Number.NaN) / 1024;
  if (!Number.isInteger(amount) || amount < 1)
    throw usageError(`${flag} cannot be "${text}"`, 'write whole GiB with the unit: 10GiB, 1TiB');
  if (amount > volumeGiBMax) throw usageError(`${flag} cannot be "${text}"`, `at most ${memory(volumeGiBMax * 1024)}`);
  return amount;
}

function parseMebibytes(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,3})?) ?([a-z]{1,3})$/i.exec(text);
  const factor = mebibytes[match?.[2]?.toLowerCase() ?? ''];
  return match && factor !== undefined ? Number(match[1]) * factor : undefined;
}

export function parseInteger(flag: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw usageError(`${flag} must be a whole number from ${min} to ${max}, not "${text}"`);
  return value;
}

/** `90s`, `5m`, `1h30m`, `30d` → milliseconds. */
export function parseDurationMs(flag: string, text: string): number {
  const match = /^(?:(\d{1,6})d)?(?:(\d{1,7})h)?(?:(\d{1,6})m)?(?:(\d{1,7}(?:\.\d{1,3})?)s)?(?:(\d{1,9})ms)?$/.exec(
    text,
  );
  if (text === '' || !match)
    throw usageError(
      `${flag} cannot be "${text}"`,
      'write it in days, hours, minutes and seconds: 90s, 5m, 1h30m, 30d',
    );
  const [days, hours, minutes, seconds, milliseconds] = match.slice(1).map((part) => Number(part ?? 0));
  return (
    ((days ?? 0) * 86_400 + (hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1000 + (milliseconds ?? 0)
  );
}

/** `80`, `8080:80`, `5353:53/udp`. Without a host port any free one is used. */
export function parsePort(text: string): GuestPort {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})(?:\/(tcp|udp))?$/.exec(text);
  const guestPort = Number(match?.[2]);
  const hostPort = Number(match?.[1] ?? 0);
  if (!match || guestPort < 1 || guestPort > 65_535 || hostPort > 65_535) {
    throw usageError(
      `--publish cannot be "${text}"`,
      'write HOST:GUEST[/tcp|udp], or only GUEST for any free port of the host: 8080:80, 80, 5353:53/udp',
    );
  }
  return { guestPort, hostPort, protocol: match[3] === 'udp' ? 'udp' : 'tcp' };
}

/** `k=v` pairs in the given order; the last one of a key wins. */
export function parseLabels(flag: string, pairs: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw usageError(`${flag} cannot be "${pair}"`, `write ${flag} KEY=VALUE`);
    Object.defineProperty(labels, pair.slice(0, at), {
      value: pair.slice(at + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return labels;
}

/** Commander's collector for a flag that may be repeated. */
export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

/** `45s`, `3m12s`, `5h4m`, `3d2h`: two units at most, for ages. */
export function age(durationMs: number): string {
  const seconds = Math.max(0, Math.floor(durationMs / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return `${minutes}m${seconds % 60 ? `${seconds % 60}s` : ''}`;
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h${minutes % 60 ? `${minutes % 60}m` : ''}`;
  const days = Math.floor(hours / 24);
  return days < 10 && hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
}

export function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(durationMs < 100_000 ? 1 : 0)} s`;
}

export function memory(mebi: number): string {
  if (mebi >= 1024 ** 2 && mebi % 1024 ** 2 === 0) return `${mebi / 1024 ** 2} TiB`;
  if (mebi >= 1024 && mebi % 1024 === 0) return `${mebi / 1024} GiB`;
  return mebi >= 10_240 ? `${(mebi / 1024).toFixed(1)} GiB` : `${mebi} MiB`;
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** `127.0.0.1:8080->80`; the address is known once the port is published. */
export function port({ hostAddress, hostPort, guestPort, protocol }: PublishedPort): string {
  const where = hostAddress === undefined ? '' : `${hostAddress}:`;
  return `${where}${hostPort || '?'}->${guestPort}${protocol === 'udp' ? '/udp' : ''}`;
}

/** An amount of a resource class: `2 CPUs`, `4 GiB memory`. */
export function amountText(resourceClass: string, amount: number): string {
  switch (resourceClass) {
    case 'VCPU':
      return `${amount} CPU${amount === 1 ? '' : 's'}`;
    case 'MEMORY_MB':
      return `${memory(amount)} memory`;
    case 'DISK_GB':
      return `${amount} GiB disk`;
    default:
      return `${amount} ${resourceClass}`;
  }
}
