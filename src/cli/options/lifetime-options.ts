// The flags of an instance's lifetime: when it ends by itself, and whether it may be deleted.

import type { Command } from 'commander';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { usageError } from '../exit-codes.ts';
import { parseDurationMs } from './units.ts';

export interface LifetimeOptions {
  readonly ttl?: string;
  readonly expires?: string;
  readonly protect?: true;
  readonly stopGrace?: string;
}

export function withLifetimeOptions(command: Command): Command {
  return command
    .option('--ttl <duration>', 'delete it this long after its creation: 2h, 7d; "berth extend" gives it more time')
    .option('--expires <time>', 'delete it at this time: 2030-01-31T18:00Z')
    .option('--stop-grace <duration>', 'time that its guest has to power off before it is killed: 5s; default: 30s')
    .option('--protect', 'protect it from deletion: berth unprotect');
}

export function lifetimeOf({ ttl, expires, protect, stopGrace }: LifetimeOptions): Partial<InstanceSpec> {
  return {
    ...(ttl === undefined ? {} : { ttlMs: parseDurationMs('--ttl', ttl) }),
    ...(expires === undefined ? {} : { expiresAtMs: parseTime('--expires', expires) }),
    ...(protect ? { protected: true } : {}),
    ...(stopGrace === undefined ? {} : { stopGraceMs: parseDurationMs('--stop-grace', stopGrace) }),
  };
}

/** With a time zone: the server and this machine may be in different ones. */
function parseTime(flag: string, text: string): number {
  const atMs = /T.*(Z|[+-]\d\d:?\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(atMs))
    throw usageError(`${flag} cannot be "${text}"`, 'write a date, a time and its zone: 2030-01-31T18:00Z');
  return atMs;
}
