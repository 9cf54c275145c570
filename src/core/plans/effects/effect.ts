// One line of the effects of a change.

import type { ChangeEffect } from '../../../api/plans/effects.ts';
import type { Metadata } from '../../../api/resources/metadata.ts';

export function effect(
  { kind, metadata: { id, project, name } }: { readonly kind: ChangeEffect['kind']; readonly metadata: Metadata },
  code: ChangeEffect['code'],
  message: string,
): ChangeEffect {
  return { kind, id, project, name, code, message };
}
