// The buttons of a resource: the permitted actions of its kind, and deletion.

import { Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { useNavigate } from 'react-router';
import type { AnyResource, Kind } from '../../../../src/api/resources/index.ts';
import { useMay } from '../../../data/may.ts';
import { Actions } from '../../../parts/actions.tsx';
import { paths } from '../../../paths.ts';
import { PlanLink } from '../../plans/plan-link.tsx';
import { Delete } from '../delete.tsx';
import { actionsOf, type KindAction, type KindPlan } from './kind-actions.ts';

export function KindButtons({ kind, resource }: { readonly kind: Kind; readonly resource: AnyResource }): ReactNode {
  const navigate = useNavigate();
  return (
    <Group gap="xs">
      {actionsOf(kind, resource as never).map(
        (
          each, // one is of the other's kind
        ) => (
          <Permitted key={'plan' in each ? each.plan : each.name} action={each} project={resource.metadata.project} />
        ),
      )}
      <Delete kind={kind} resource={resource} onDone={() => void navigate(paths.list(kind))} />
    </Group>
  );
}

/** Hidden when the user is not permitted to do it. */
function Permitted({
  action,
  project,
}: {
  readonly action: KindAction | KindPlan;
  readonly project: string;
}): ReactNode {
  const navigate = useNavigate();
  const may = useMay(action.needs.verb, action.needs.resource, project || undefined);
  if (!may) return null;
  if ('plan' in action) return <PlanLink verb={action.plan} answers={action.answers} />;
  const { opens, run } = action;
  const opened = async (): Promise<void> => {
    const made = (await run()) as AnyResource; // an action that opens something returns it
    if (opens !== undefined) void navigate(paths.one(opens, made.metadata));
  };
  return <Actions actions={[{ ...action, run: opened }]} />;
}
