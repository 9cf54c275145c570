// The plural of a kind, as it stands in paths. Without schemas: clients load it.

export function pluralOf(kind: string): string {
  return kind === 'inventory' ? 'inventories' : `${kind}s`;
}
