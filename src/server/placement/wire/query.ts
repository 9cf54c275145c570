// What the parameters of a query mean: amounts, traits, aggregates and trees, with the refusals of the original.

import type { Amounts } from '../../../api/resources/metadata.ts';
import { badRequest } from '../../../core/operations/placement/fault.ts';
import { isUuidLike } from './json-schema.ts';

/** `VCPU:2,MEMORY_MB:1024`. */
export function amountsIn(text: string): Amounts {
  const sorry = (got: string) =>
    badRequest(
      `Badly formed resources parameter. Expected resources query string parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: ${got}.`,
    );
  if (text.trim() === '') throw sorry('empty string');
  const amounts = new Map<string, number>();
  for (const each of text.split(',')) {
    const [name, amount, more] = each.split(':');
    if (name === undefined || amount === undefined || more !== undefined) throw sorry(each);
    if (!/^\s*[+-]?\d+(_\d+)*\s*$/.test(amount))
      throw badRequest(`Requested resource ${name} expected positive integer amount. Got: ${amount}.`);
    const number = Number(amount.replaceAll('_', ''));
    if (number < 1) throw badRequest(`Requested resource ${name} requires amount >= 1. Got: ${number}.`);
    amounts.set(name, number);
  }
  return Object.fromEntries(amounts);
}

export interface TraitsAsked {
  /** Of each list at least one; all lists must hold. */
  readonly required: readonly (readonly string[])[];
  readonly forbidden: readonly string[];
}

/** The values of `required`: before 1.39 only the last one counts; `!T` since 1.22, `in:` since 1.39. */
export function traitsIn(values: readonly string[], version: number): TraitsAsked {
  const required: string[][] = [];
  const forbidden: string[] = [];
  for (const value of version >= 39 ? values : values.slice(-1)) {
    const some = value.startsWith('in:') ? anyOf(value, version) : eachOf(value, version);
    required.push(...some.required);
    forbidden.push(...some.forbidden);
  }
  return { required, forbidden };
}

interface Some {
  readonly required: string[][];
  readonly forbidden: string[];
}

function anyOf(value: string, version: number): Some {
  const sorry = 'Invalid query string parameters: ';
  const format = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'";
  if (version < 39) throw badRequest(`${sorry}${format} only supported since microversion 1.39. Got: ${value}`);
  const traits = value
    .slice(3)
    .split(',')
    .map((trait) => trait.trim());
  if (traits.includes(''))
    throw badRequest(
      `${sorry}Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: ${value}`,
    );
  if (traits.some((trait) => trait.startsWith('!')))
    throw badRequest(`${sorry}${format} does not support forbidden traits. Got: ${value}`);
  return { required: [[...new Set(traits)]], forbidden: [] };
}

/** The traits of a value without `in:`, as `root_required` has it. */
export function eachTraitIn(value: string): TraitsAsked {
  return eachOf(value, 22);
}

function eachOf(value: string, version: number): Some {
  const traits = value.split(',').map((trait) => trait.trim());
  const mayForbid = version >= 22;
  const sorry = `Invalid query string parameters: Expected 'required' parameter value of the form: HW_CPU_X86_VMX,${mayForbid ? '!' : ''}CUSTOM_MAGIC. Got`;
  // As in the original, any number of exclamation marks is one.
  const forbidden = traits.filter((trait) => trait.startsWith('!')).map((trait) => trait.replace(/^!+/, ''));
  if (traits.includes('') || forbidden.includes('')) throw badRequest(`${sorry} an empty trait in: ${value}`);
  if (forbidden.length > 0 && !mayForbid) throw badRequest(`${sorry}: ${value}`);
  return { required: traits.filter((trait) => !trait.startsWith('!')).map((trait) => [trait]), forbidden };
}

export interface AggregatesAsked {
  readonly memberOf: readonly (readonly string[])[];
  readonly forbidden: readonly string[];
}

/** The values of `member_of`: several since 1.24, forbidden ones since 1.32. `suffix` is that of the parameter. */
export function aggregatesIn(values: readonly string[], version: number, suffix = ''): AggregatesAsked {
  if (version < 24 && values.length > 1) throw badRequest(`Multiple member_of${suffix} parameters are not supported`);
  const memberOf: string[][] = [];
  const forbidden: string[] = [];
  for (const value of values) {
    if (value.includes(',') && !/^!?in:/.test(value))
      throw badRequest(
        `Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid microversion. Got: ${value}`,
      );
    const uuids = value.replace(/^!/, '').replace(/^in:/, '').split(',');
    const wrong = uuids.find((uuid) => !isUuidLike(uuid));
    if (wrong !== undefined)
      throw badRequest(
        `Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: ${wrong}`,
      );
    if (!value.startsWith('!')) {
      memberOf.push(uuids);
      continue;
    }
    if (version < 32)
      throw badRequest(`Forbidden member_of${suffix} parameters are not supported in the specified microversion`);
    forbidden.push(...uuids);
  }
  return { memberOf, forbidden };
}
