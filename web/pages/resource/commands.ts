// The berth commands of each kind, for those who want to do the same in a terminal.

import type { Kind } from '../../../src/api/resources/index.ts';

/** The list; with a name, one of them. */
export function commandOf(kind: Kind, one?: { readonly name: string; readonly project?: string | undefined }): string {
  const project = one?.project && one.project !== 'default' ? ` --project ${one.project}` : '';
  if (one === undefined) return kind === 'instance' ? 'berth ps' : `berth get ${kind}`;
  return kind === 'instance' ? `berth show ${one.name}${project}` : `berth get ${kind} ${one.name}${project} -o yaml`;
}
