// The response to a batch of creates: for each in order, the instance or the reason for its refusal.

import type { ErrorBody } from './errors.ts';
import type { Instance } from './resources/instance.ts';

export const instanceBatchMax = 1_000;

export type InstanceBatchItem = { readonly instance: Instance } | ErrorBody;

export interface InstanceBatchAnswer {
  readonly items: readonly InstanceBatchItem[];
}
