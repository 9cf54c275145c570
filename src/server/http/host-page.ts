// How many hosts an answer tells of one by one, and from where on.

import type { ExplainOptions } from '../../core/scheduler/explain.ts';
import type { Query } from './route.ts';

/** 20 hosts fill a screen; 5,000 with all their reasons are some 2 MB. */
const hostsDefault = 20;
const hostsMax = 5_000;

/** Which hosts are told of one by one. */
export function pageOf(query: Query): Pick<ExplainOptions, 'limit' | 'offset'> {
  return {
    limit: query.integer('limit', { min: 0, max: hostsMax }) ?? hostsDefault,
    offset: query.integer('continue', { min: 0, max: 2 ** 31 }) ?? 0,
  };
}
