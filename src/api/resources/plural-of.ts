// The plural of a kind, as it stands in paths. Without schemas: clients load it.

export function pluralOf(kind: string): string {
  if (kind === 'inventory') return 'inventories';
  return kind === 'warmPool' ? 'warm-pools' : `${kind}s`;
}
