// The flags about other instances: near them, away from them, spread, limited per host.

import type { Command } from 'commander';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import type { AffinityRule, SpreadRule } from '../../api/resources/placement-rules.ts';
import { usageError } from '../exit-codes.ts';
import { collect, parseInteger, parseLabels } from './units.ts';

export interface NeighbourOptions {
  readonly group?: string;
  readonly affinity: readonly string[];
  readonly antiAffinity: readonly string[];
  readonly spread: readonly string[];
  readonly maxPerHost?: string;
}

export function withNeighbourOptions(command: Command): Command {
  return command
    .option('--group <group>', 'placement group of the instance: berth group ls')
    .option(
      '--affinity <rule>',
      'near instances with these labels: app=db on their hosts, zone:app=db,tier=x in their zones; zone:app=db:50 as a preference; may be repeated',
      collect,
      [],
    )
    .option(
      '--anti-affinity <rule>',
      'away from instances with these labels, in the same syntax; may be repeated',
      collect,
      [],
    )
    .option(
      '--spread <rule>',
      'spread evenly over zones, racks or hosts: zone, zone:2 for a skew of 2, zone:1:soft as a preference; counts its group, else instances with all of its labels; may be repeated',
      collect,
      [],
    )
    .option('--max-per-host <count>', 'at most this many of its group, or with all of its labels, on one host');
}

/** The flags as a part of `spec.placement`. */
export function neighboursOf(options: NeighbourOptions): Partial<InstanceSpec['placement']> {
  const { group, affinity, antiAffinity, spread, maxPerHost } = options;
  return {
    ...(group === undefined ? {} : { group }),
    ...(affinity.length === 0 ? {} : { affinity: affinity.map((text) => parseAffinity('--affinity', text)) }),
    ...(antiAffinity.length === 0
      ? {}
      : { antiAffinity: antiAffinity.map((text) => parseAffinity('--anti-affinity', text)) }),
    ...(spread.length === 0 ? {} : { spread: spread.map(parseSpread) }),
    ...(maxPerHost === undefined ? {} : { maxPerHost: parseMaxPerHost(maxPerHost) }),
  };
}

/** Whether flags or a file say something about neighbours. */
export function hasNeighbourRules(placement: Partial<InstanceSpec['placement']>): boolean {
  const { group, affinity = [], antiAffinity = [], spread = [], maxPerHost } = placement;
  return group !== undefined || maxPerHost !== undefined || affinity.length + antiAffinity.length + spread.length > 0;
}

export function parseMaxPerHost(text: string): number {
  return parseInteger('--max-per-host', text, { min: 1, max: 1_000_000 });
}

/** `app=db`, `zone:app=db,tier=x`, `zone:app=db:50`. */
function parseAffinity(flag: string, text: string): AffinityRule {
  const match = /^(?:([^:=,]+):)?([^:]+=[^:]*)(?::(\d{1,3}))?$/.exec(text);
  if (!match) {
    throw usageError(
      `${flag} cannot be "${text}"`,
      'write [BY:]KEY=VALUE[,KEY=VALUE][:WEIGHT]: app=db, zone:app=db, host:app=db:50',
    );
  }
  const [, by = 'host', pairs = '', weight] = match;
  return {
    to: parseLabels(flag, pairs.split(',')),
    by,
    required: weight === undefined,
    ...(weight === undefined
      ? {}
      : { weight: parseInteger(`${flag} ${text}: the weight`, weight, { min: 1, max: 100 }) }),
  };
}

/** `zone`, `zone:2`, `zone:1:soft`. */
export function parseSpread(text: string): SpreadRule {
  const match = /^([^:=]+)(?::(\d{1,7}))?(:soft)?$/.exec(text);
  if (!match) throw usageError(`--spread cannot be "${text}"`, 'write KEY[:SKEW][:soft]: zone, rack:2, zone:1:soft');
  const [, by = '', skew = '1', soft] = match;
  return {
    by,
    maxSkew: parseInteger(`--spread ${text}: the skew`, skew, { min: 1, max: 1_000_000 }),
    required: soft === undefined,
  };
}
