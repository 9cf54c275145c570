// The flags that select hosts by their properties: labels, traits, taints, dedication; and by their devices and cells.

import type { Command } from 'commander';
import type { HostRule, LabelOperator, Preference, Toleration, TraitRules } from '../../api/resources/host-rules.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { usageError } from '../exit-codes.ts';
import { parseEffect } from '../fleet/taints.ts';
import { collect, parseInteger, parseLabels } from './units.ts';

export interface DeviceOptions {
  readonly gpus?: string;
  readonly gpuShare?: string;
  readonly gpuModel: readonly string[];
  readonly numaCells?: string;
}

export interface HostOptions {
  readonly hostRule: readonly string[];
  readonly trait: readonly string[];
  readonly prefer: readonly string[];
  readonly tolerate: readonly string[];
  readonly dedicated?: true;
  readonly weight: readonly string[];
  readonly query?: string;
}

export function withDeviceOptions(command: Command): Command {
  return command
    .option('--gpus <count>', 'whole GPUs')
    .option('--gpu-share <share>', 'a fraction of one GPU: 0.5, 0.25')
    .option('--gpu-model <model>', 'only GPUs of this model: A100; may be repeated, for any of them', collect, [])
    .option('--numa-cells <count>', 'take CPUs and memory in equal parts from this many NUMA cells');
}

export function withHostOptions(command: Command): Command {
  return command
    .option(
      '--host-rule <rule>',
      'only on hosts whose labels match: zone=a,b  zone!=a  gpu  !old  cores>8  cores<64; may be repeated',
      collect,
      [],
    )
    .option(
      '--trait <trait>',
      'only on hosts with this trait; !TRAIT: without it; A,B: with one of them; may be repeated',
      collect,
      [],
    )
    .option(
      '--prefer <weight:rule>',
      'prefer hosts whose labels match, or with a trait (30:trait=CUSTOM_SSD); weight -100 to 100: 50:zone=a, -20:old; may be repeated',
      collect,
      [],
    )
    .option(
      '--tolerate <taint>',
      'also allow hosts with this taint: KEY[=VALUE][:EFFECT]; may be repeated',
      collect,
      [],
    )
    .option('--dedicated', 'only on dedicated hosts')
    .option('--weight <score=weight>', "weight of a score, instead of the profile's; may be repeated", collect, [])
    .option(
      '--query <query>',
      'resources=VCPU:1,MEMORY_MB:256&required=TRAIT, in the syntax of OpenStack Placement, with its groups',
    );
}

/** The flags as a part of a spec. */
export function devicesOf(options: DeviceOptions): Pick<InstanceSpec, 'gpus' | 'numaCells'> {
  const { gpus, gpuShare, gpuModel, numaCells } = options;
  if (gpuShare !== undefined && gpus !== undefined && gpus !== '1')
    throw usageError('--gpu-share is a fraction of one GPU; leave out --gpus');
  const asked = gpus !== undefined || gpuShare !== undefined || gpuModel.length > 0;
  return {
    ...(asked
      ? {
          gpus: {
            count: gpus === undefined ? 1 : parseInteger('--gpus', gpus, { min: 1, max: 64 }),
            ...(gpuShare === undefined ? {} : { share: parseShare(gpuShare) }),
            ...(gpuModel.length === 0 ? {} : { models: [...gpuModel] }),
          },
        }
      : {}),
    ...(numaCells === undefined ? {} : { numaCells: parseInteger('--numa-cells', numaCells, { min: 1, max: 16 }) }),
  };
}

/** The flags as a part of `spec.placement`. */
export function hostPlaceOf(options: HostOptions): Partial<InstanceSpec['placement']> {
  const { hostRule, trait, prefer, tolerate, dedicated, weight, query } = options;
  return {
    ...(hostRule.length === 0 ? {} : { hostRules: hostRule.map((text) => parseHostRule('--host-rule', text)) }),
    ...(trait.length === 0 ? {} : { traits: parseTraits(trait) }),
    ...(prefer.length === 0 ? {} : { preferences: prefer.map(parsePreference) }),
    ...(tolerate.length === 0 ? {} : { tolerations: tolerate.map(parseToleration) }),
    ...(dedicated ? { dedicated } : {}),
    ...(weight.length === 0 ? {} : { weights: parseWeights(weight) }),
    ...(query === undefined ? {} : { query }),
  };
}

/** 0.25 → 250 thousandths. */
function parseShare(text: string): number {
  const share = /^(0?\.\d{1,3}|1(\.0{1,3})?)$/.test(text) ? Math.round(Number(text) * 1000) : 0;
  if (share < 1)
    throw usageError(`--gpu-share cannot be "${text}"`, 'write a fraction with at most three decimals: 0.5, 0.125');
  return share;
}

const operatorBySign: Readonly<Record<string, LabelOperator>> = { '=': 'In', '!=': 'NotIn', '>': 'Gt', '<': 'Lt' };

/** `zone=a,b`, `zone!=a`, `gpu`, `!old`, `cores>8`, `cores<64`. */
export function parseHostRule(flag: string, text: string): HostRule {
  const [, not, key = '', sign, values = ''] = /^(!?)([A-Za-z0-9][\w./-]*)(?:(=|!=|>|<)(.+))?$/.exec(text) ?? [];
  if (key === '' || (not === '!' && sign !== undefined)) {
    throw usageError(`${flag} cannot be "${text}"`, 'write KEY=A,B, KEY!=A, KEY, !KEY, KEY>8 or KEY<64');
  }
  if (sign === undefined) return { key, operator: not === '!' ? 'DoesNotExist' : 'Exists' };
  return { key, operator: operatorBySign[sign] ?? 'In', values: values.split(',') };
}

function parseTraits(texts: readonly string[]): TraitRules {
  const required: string[] = [];
  const forbidden: string[] = [];
  const anyOf: string[][] = [];
  for (const text of texts) {
    if (text.startsWith('!')) forbidden.push(text.slice(1));
    else if (text.includes(',')) anyOf.push(text.split(','));
    else required.push(text);
  }
  return {
    ...(required.length === 0 ? {} : { required }),
    ...(forbidden.length === 0 ? {} : { forbidden }),
    ...(anyOf.length === 0 ? {} : { anyOf }),
  };
}

function parsePreference(text: string): Preference {
  const [, digits, rule = ''] = /^([+-]?\d{1,3}):(.+)$/.exec(text) ?? [];
  const weight = Number(digits);
  if (digits === undefined || weight === 0 || Math.abs(weight) > 100)
    throw usageError(`--prefer cannot be "${text}"`, 'write WEIGHT:RULE, the weight from -100 to 100: 50:zone=a');
  const trait = /^trait=([A-Z][A-Z0-9_]*)$/.exec(rule)?.[1];
  return trait === undefined ? { weight, ...parseHostRule('--prefer', rule) } : { weight, trait };
}

function parseToleration(text: string): Toleration {
  if (text === '*') return {};
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?(?::(.+))?$/.exec(text) ?? [];
  if (key === undefined)
    throw usageError(`--tolerate cannot be "${text}"`, 'write KEY[=VALUE][:EFFECT], or * for every taint');
  return {
    key,
    ...(value === undefined ? {} : { value }),
    ...(effect === undefined ? {} : { effect: parseEffect('--tolerate', effect) }),
  };
}

export function parseWeights(pairs: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    Object.entries(parseLabels('--weight', pairs)).map(([name, weight]): [string, number] => [
      name,
      parseInteger(`--weight ${name}`, weight, { min: 0, max: 1000 }),
    ]),
  );
}
