// Kinds that others name: their changes and deletions have effects. Without schemas, for the command line.

import type { Kind } from '../resources/index.ts';

const usedKinds = ['pool', 'image', 'size', 'group'] as const;
export type UsedKind = (typeof usedKinds)[number];

export function isUsedKind(kind: Kind): kind is UsedKind {
  return usedKinds.some((each) => each === kind);
}
