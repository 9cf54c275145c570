// Traits: whether a provider has the required traits.

import type { TraitRules } from '../../api/resources/host-rules.ts';

export type TraitFault =
  | { readonly kind: 'missing'; readonly trait: string }
  | { readonly kind: 'forbidden'; readonly trait: string }
  | { readonly kind: 'none-of'; readonly traits: readonly string[] };

/** The first rule that the traits violate, or null. */
export function traitFault({ required, forbidden, anyOf }: TraitRules, borne: readonly string[]): TraitFault | null {
  for (const trait of required ?? []) if (!borne.includes(trait)) return { kind: 'missing', trait };
  for (const trait of forbidden ?? []) if (borne.includes(trait)) return { kind: 'forbidden', trait };
  for (const traits of anyOf ?? [])
    if (!traits.some((trait) => borne.includes(trait))) return { kind: 'none-of', traits };
  return null;
}
