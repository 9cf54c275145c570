// The plural of a kind, as it stands in paths. Without schemas: clients load it.

export function pluralOf(kind: string): string {
  if (kind === 'inventory') return 'inventories';
  if (kind === 'jobTemplate') return 'job-templates';
  return kind === 'warmPool' ? 'warm-pools' : `${kind}s`;
}
