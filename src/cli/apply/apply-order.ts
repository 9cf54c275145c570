// In which order resources are made: what others name comes first. They are deleted in the opposite order.

import type { Kind } from '../../api/resources/index.ts';

const first: readonly Kind[] = [
  'project',
  'role',
  'pool',
  'size',
  'image',
  'secret',
  'inventory',
  'group',
  'volume',
  'binding',
  'webhook',
  'host',
];

export function inOrder<T extends { readonly kind: Kind }>(resources: readonly T[]): readonly T[] {
  const rank = ({ kind }: T): number => (first.includes(kind) ? first.indexOf(kind) : first.length);
  return resources.toSorted((a, b) => rank(a) - rank(b));
}
