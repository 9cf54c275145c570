// Label rule: whether the labels of a host satisfy one rule. The operators are those of Kubernetes' node affinity
// (kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node).

import type { LabelOperator } from '../../api/resources/host-rules.ts';
import type { Labels } from '../../api/resources/metadata.ts';

export interface LabelRule {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values?: readonly string[] | undefined;
}

/** The rule as a test of labels. Gt and Lt are false when the label or the bound is not a whole number. */
export function labelTest({ key, operator, values = [] }: LabelRule): (labels: Labels) => boolean {
  switch (operator) {
    case 'In':
      return (labels) => isOneOf(values, labelOf(labels, key));
    case 'NotIn':
      return (labels) => !isOneOf(values, labelOf(labels, key));
    case 'Exists':
      return (labels) => labelOf(labels, key) !== undefined;
    case 'DoesNotExist':
      return (labels) => labelOf(labels, key) === undefined;
    case 'Gt':
    case 'Lt': {
      const bound = wholeNumber(values[0]);
      return (labels) => {
        const found = wholeNumber(labelOf(labels, key));
        if (found === undefined || bound === undefined) return false;
        return operator === 'Gt' ? found > bound : found < bound;
      };
    }
  }
}

export function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** At most 15 digits: exact. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** `zone in a, b`, for messages. */
export function describeLabelRule({ key, operator, values = [] }: LabelRule): string {
  switch (operator) {
    case 'In':
      return values.length === 1 ? `${key} = ${values[0]}` : `${key} in ${values.join(', ')}`;
    case 'NotIn':
      return values.length === 1 ? `${key} != ${values[0]}` : `${key} not in ${values.join(', ')}`;
    case 'Exists':
      return `${key} set`;
    case 'DoesNotExist':
      return `${key} not set`;
    case 'Gt':
      return `${key} > ${values[0]}`;
    case 'Lt':
      return `${key} < ${values[0]}`;
  }
}

function isOneOf(values: readonly string[], found: string | undefined): boolean {
  return found !== undefined && values.includes(found);
}
