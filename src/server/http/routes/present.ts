// A stored resource as users see it: with the revision of the commit that last wrote it.

import { isRecord } from '../../../base/is-record.ts';
import type { AnyResource } from '../../../api/resources/index.ts';

export function present(entry: { readonly value: AnyResource; readonly revision: number }): AnyResource {
  const { value, revision } = entry;
  return { ...value, metadata: { ...value.metadata, revision } };
}

export function isResource(value: unknown): value is AnyResource {
  return isRecord(value) && 'metadata' in value;
}
