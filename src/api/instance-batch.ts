// What a batch of creates answers: in the order asked for, each instance or the reason why it was refused.

import type { ErrorBody } from './errors.ts';
import type { Instance } from './resources/instance.ts';

export const instanceBatchMax = 1_000;

export type InstanceBatchItem = { readonly instance: Instance } | ErrorBody;

export interface InstanceBatchAnswer {
  readonly items: readonly InstanceBatchItem[];
}
