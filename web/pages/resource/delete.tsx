// Deletes a resource, after a question that names it. Shown to those who may.

import type { ReactNode } from 'react';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../src/api/resources/index.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { type Action, Actions } from '../../parts/actions.tsx';
import { deleteWords, projectFlag } from './commands.ts';

export function Delete({
  kind,
  resource: { metadata },
  onDone,
}: {
  readonly kind: Kind;
  readonly resource: AnyResource;
  readonly onDone: () => void;
}): ReactNode {
  const { name, project } = metadata;
  const may = useMay('delete', kind, project || undefined);
  const verbs: readonly string[] = resourceDefinitions[kind].verbs;
  if (!may || !verbs.includes('delete')) return null;
  const action: Action = {
    name: 'Delete',
    command: `${deleteWords(kind)} ${name}${projectFlag(project)}`,
    question: `Delete ${kind} ${name}${kind === 'instance' ? ' and its disk' : ''}?`,
    whyNot: metadata.deletionRequestedAtMs === undefined ? undefined : 'Its deletion was requested already',
    dangerous: true,
    run: async () => {
      await client.delete(kind, name, project ? { project } : {});
      onDone();
    },
  };
  return <Actions actions={[action]} />;
}
