// The actions of each kind, besides editing and deletion. Each action names its berth command.

import type { AccessResource, Verb } from '../../../../src/api/access.ts';
import type { Kind, ResourceByKind } from '../../../../src/api/resources/index.ts';
import { client } from '../../../data/client.ts';
import type { Action } from '../../../parts/actions.tsx';
import type { PlanVerb } from '../../plans/plan-forms.ts';
import { projectFlag } from '../commands.ts';

interface Needed {
  readonly needs: { readonly verb: Verb; readonly resource: AccessResource };
}

export interface KindAction extends Action, Needed {
  /** Where to go with what the action returned. */
  readonly opens?: Kind;
}

/** An action that opens a plan. */
export interface KindPlan extends Needed {
  readonly plan: PlanVerb;
  readonly answers: Readonly<Record<string, string | undefined>>;
}

type ActionsOf<K extends Kind> = (resource: ResourceByKind[K]) => readonly (KindAction | KindPlan)[];

const actionsByKind: { readonly [K in Kind]?: ActionsOf<K> } = {
  workload({ metadata, spec }) {
    const { name, project, labels, revision } = metadata;
    const needs = { verb: 'update', resource: 'workload' } as const;
    const answers = { workload: name, project };
    return [
      {
        needs,
        name: spec.paused ? 'Resume' : 'Pause',
        command: `berth workload ${spec.paused ? 'resume' : 'pause'} ${name}${projectFlag(project)}`,
        run: () =>
          client.replace('workload', name, {
            metadata: { project, labels, revision },
            spec: { ...spec, paused: !spec.paused },
          }),
      },
      ...(spec.perHost
        ? []
        : [{ needs, plan: 'scale', answers: { ...answers, replicas: String(spec.replicas) } } as const]),
      { needs, plan: 'update', answers },
      { needs, plan: 'undo', answers },
    ];
  },
  warmPool({ metadata, spec }) {
    const { name, project, labels, revision } = metadata;
    const scaled = (by: 1 | -1): KindAction => ({
      needs: { verb: 'update', resource: 'warmPool' },
      name: by > 0 ? 'One more guest' : 'One guest fewer',
      command: `berth warm-pool scale ${name} ${spec.size + by}${projectFlag(project)}`,
      whyNot: spec.size + by < 0 ? 'It keeps none' : undefined,
      run: () =>
        client.replace('warmPool', name, {
          metadata: { project, labels, revision },
          spec: { ...spec, size: spec.size + by },
        }),
    });
    const claim: KindAction = {
      needs: { verb: 'update', resource: 'instance' },
      name: 'Claim a guest',
      command: `berth run --from-pool ${name}${projectFlag(project)}`,
      opens: 'instance',
      run: () => client.claimWarmGuest(name, {}, { project }),
    };
    return [...(spec.forJobs ? [] : [claim]), scaled(1), scaled(-1)];
  },
  webhook({ metadata: { name, project, labels, revision }, spec }) {
    const needs = { verb: 'update', resource: 'webhook' } as const;
    return [
      {
        needs,
        name: 'Send a test',
        command: `berth webhook test ${name}${projectFlag(project)}`,
        run: () => client.testWebhook(name, { project }),
      },
      {
        needs,
        name: spec.paused ? 'Resume' : 'Pause',
        command: `berth apply -f ${name}.yaml`,
        run: () =>
          client.replace('webhook', name, {
            metadata: { project, labels, revision },
            spec: { ...spec, paused: !spec.paused },
          }),
      },
    ];
  },
  token({ metadata: { name }, spec }) {
    const days = 90;
    if (spec.user || spec.share) return [];
    return [
      {
        needs: { verb: 'update', resource: 'token' },
        name: `Extend by ${days} days`,
        command: `berth token extend ${name} --expires ${days}d`,
        question: `Let token ${name} expire ${days} days from now?`,
        run: () => client.extendToken(name, { expiresInSec: days * 86_400 }),
      },
    ];
  },
  inventory({ metadata: { name }, status }) {
    const { waiting } = status;
    if (waiting === undefined) return [];
    return [
      {
        needs: { verb: 'update', resource: 'inventory' },
        name: `Let ${waiting.gone} hosts go`,
        command: `berth inventory confirm ${name} ${waiting.hash}`,
        question: `Let ${waiting.gone} hosts go that the last list of inventory ${name} lacks?`,
        dangerous: true,
        whyNot: status.confirmed === waiting.hash ? 'It is confirmed: the next list counts' : undefined,
        run: () => client.confirmInventory(name, waiting.hash),
      },
    ];
  },
  pool: ({ metadata: { name } }) => removal('pool', { name }),
  image: ({ metadata: { name } }) => removal('image', { name }),
  size: ({ metadata: { name } }) => removal('size', { name }),
  group: ({ metadata: { name, project } }) => removal('group', { name, project }),
};

/** Opens the plan of a removal, which lists what uses the resource. */
function removal(
  kind: 'pool' | 'image' | 'size' | 'group',
  named: { readonly name: string; readonly project?: string },
): readonly KindPlan[] {
  return [{ needs: { verb: 'delete', resource: kind }, plan: 'remove', answers: { kind, ...named } }];
}

export function actionsOf<K extends Kind>(kind: K, resource: ResourceByKind[K]): readonly (KindAction | KindPlan)[] {
  const of: ActionsOf<K> | undefined = actionsByKind[kind];
  return of?.(resource) ?? [];
}
