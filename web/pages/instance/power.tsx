// Power and deletion of an instance. What the state and the rights permit is offered; what the server refuses is shown in its words.

import { Group } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { type Action, Actions } from '../../parts/actions.tsx';
import { PlanLink } from '../plans/plan-link.tsx';
import { projectFlag } from '../resource/commands.ts';
import { Delete } from '../resource/delete.tsx';
import { type PowerAction, powerActions } from './power-actions.ts';

export function Power({
  instance,
  onDeleted,
}: {
  readonly instance: Instance;
  readonly onDeleted: () => void;
}): ReactNode {
  const { metadata, spec, status } = instance;
  const { name, project, labels, revision } = metadata;
  const may = useMay('power', 'instance', project);
  const mayResize = useMay('update', 'instance', project);
  const mayMove = useMay('drain', 'host');
  const named = { instance: name, project };
  const actionOf = ({ name: action, change }: PowerAction): Action => ({
    name: action,
    command: `berth ${verbOf(action)} ${name}${projectFlag(project)}`,
    whyNot: metadata.deletionRequestedAtMs === undefined ? undefined : 'Its deletion was requested',
    run: () =>
      client.replace('instance', name, {
        metadata: { project, labels, revision },
        spec: { ...spec, ...change },
      }),
  });
  return (
    <Group gap="xs">
      {may ? <Actions actions={powerActions(instance).map(actionOf)} /> : null}
      {mayResize ? <PlanLink verb="resize" answers={named} /> : null}
      {mayMove && status.host !== undefined ? <PlanLink verb="migrate" answers={named} /> : null}
      <Delete kind="instance" resource={instance} onDone={onDeleted} />
    </Group>
  );
}

function verbOf(action: PowerAction['name']): string {
  return action === 'Suspend to disk' ? 'suspend --to-disk' : action.toLowerCase();
}
