// Taints in text form: `key=value:NoSchedule`.

import { type Taint, type TaintEffect, taintEffects } from '../../api/resources/host-rules.ts';
import { usageError } from '../exit-codes.ts';

export function parseTaint(text: string): Taint {
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?(?::(.+))?$/.exec(text) ?? [];
  if (key === undefined)
    throw usageError(`a taint cannot be "${text}"`, 'write KEY[=VALUE][:EFFECT]: reserved=ci:NoSchedule');
  return {
    key,
    ...(value === undefined ? {} : { value }),
    effect: effect === undefined ? 'NoSchedule' : parseEffect('a taint', effect),
  };
}

export function parseEffect(where: string, text: string): TaintEffect {
  const effect = taintEffects.find((known) => known.toLowerCase() === text.toLowerCase());
  if (!effect)
    throw usageError(`${where} cannot have the effect "${text}"`, `choose one of: ${taintEffects.join(', ')}`);
  return effect;
}

export function taintText({ key, value, effect }: Taint): string {
  return `${key}${value === undefined ? '' : `=${value}`}:${effect}`;
}
