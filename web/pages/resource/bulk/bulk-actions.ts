// The actions on many resources of a kind at once. Pure, except for the requests of the actions.

import type { Verb } from '../../../../src/api/access.ts';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../../src/api/resources/index.ts';
import { client } from '../../../data/client.ts';
import { powerActions } from '../../instance/power-actions.ts';
import { deleteWords, projectFlag } from '../commands.ts';

export interface BulkAction {
  readonly name: string;
  readonly verb: Verb;
  readonly dangerous?: boolean;
  /** Of the berth command, before the names. */
  readonly words: string;
  /** The resources to which the action applies. */
  readonly takes: (resource: AnyResource) => boolean;
  readonly act: (resource: AnyResource) => Promise<unknown>;
}

export function bulkActions(kind: Kind): readonly BulkAction[] {
  const verbs: readonly string[] = resourceDefinitions[kind].verbs;
  return [
    ...(kind === 'instance' ? [power('Start'), power('Stop')] : []),
    ...(kind === 'job' ? [cancel] : []),
    ...(verbs.includes('delete') && kind !== 'host' ? [deletion(kind)] : []),
  ];
}

function deletion(kind: Kind): BulkAction {
  return {
    name: 'Delete',
    verb: 'delete',
    dangerous: true,
    words: deleteWords(kind),
    takes: ({ metadata }) => metadata.deletionRequestedAtMs === undefined,
    act: ({ metadata: { name, project } }) => client.delete(kind, name, project ? { project } : {}),
  };
}

const cancel: BulkAction = {
  name: 'Cancel',
  verb: 'update',
  words: 'berth job cancel',
  takes: (resource) => resource.kind === 'job' && resource.status.endedAtMs === undefined,
  act: ({ metadata: { name, project } }) => client.cancelJob(name, { project }),
};

function power(name: 'Start' | 'Stop'): BulkAction {
  const changeOf = (resource: AnyResource) =>
    resource.kind === 'instance' ? powerActions(resource).find((each) => each.name === name)?.change : undefined;
  return {
    name,
    verb: 'power',
    words: `berth ${name.toLowerCase()}`,
    takes: (resource) => changeOf(resource) !== undefined && resource.metadata.deletionRequestedAtMs === undefined,
    async act(resource) {
      const change = changeOf(resource);
      if (resource.kind !== 'instance' || change === undefined) return;
      const { name: instance, project, labels, revision } = resource.metadata;
      await client.replace('instance', instance, {
        metadata: { project, labels, revision },
        spec: { ...resource.spec, ...change },
      });
    },
  };
}

const namesMax = 20;

/** One for each project. */
export function bulkCommand(words: string, resources: readonly AnyResource[]): string {
  const byProject = new Map<string, string[]>();
  for (const { metadata } of resources)
    byProject.set(metadata.project, [...(byProject.get(metadata.project) ?? []), metadata.name]);
  return [...byProject]
    .map(([project, names]) => {
      const more = names.length > namesMax ? ' …' : '';
      return `${words} ${names.slice(0, namesMax).join(' ')}${more}${projectFlag(project)}`;
    })
    .join('\n');
}
