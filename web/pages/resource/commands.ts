// The berth commands of each kind, for those who want to do the same in a terminal.

import type { Kind } from '../../../src/api/resources/index.ts';

/** ` --project NAME`, where it is needed. */
export function projectFlag(project: string | undefined): string {
  return project && project !== 'default' ? ` --project ${project}` : '';
}

/** The list; with a name, one of them. */
export function commandOf(kind: Kind, one?: { readonly name: string; readonly project?: string | undefined }): string {
  if (one === undefined) return kind === 'instance' ? 'berth ps' : `berth get ${kind}`;
  const project = projectFlag(one.project);
  return kind === 'instance' ? `berth show ${one.name}${project}` : `berth get ${kind} ${one.name}${project} -o yaml`;
}

/** Of the command that deletes resources of a kind, before their names. */
export function deleteWords(kind: Kind): string {
  const words: Partial<Record<Kind, string>> = {
    instance: 'berth rm',
    token: 'berth token revoke',
    spare: 'berth spare release',
    warmPool: 'berth warm-pool rm',
    jobTemplate: 'berth job-template rm',
  };
  return words[kind] ?? `berth ${kind} rm`;
}
