// What a spec uses besides its own resource: each use is a question of its own. Two specs are compared, so that a change asks only
// about what it adds.

import type { AnyResource } from '../../api/resources/index.ts';
import type { PoolSpec } from '../../api/resources/pool.ts';
import type { WebhookSpec } from '../../api/resources/webhook.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { type NamingSpec, secretsNamedBy } from '../operations/secret-references.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import type { Question } from './question.ts';

export interface Use {
  readonly question: Question;
  /** The field that names it. */
  readonly field: string;
  /** What is used; for comparison. */
  readonly name: string;
}

type Fields = Omit<NamingSpec, 'containers'> &
  Partial<Pick<InstanceSpec, 'size' | 'priority' | 'preemption' | 'volumes' | 'containers'>> & {
    readonly image?: string | undefined;
    readonly label?: string | undefined;
    readonly source?: { readonly volume: string } | undefined;
    readonly placement?: { readonly pool?: string | undefined; readonly task?: string | undefined } | undefined;
  };

/** The uses of the spec of an instance, job, task, spare or volume in a project, and of a webhook or a pool; none for other kinds. */
export function usesOf(resource: AnyResource, project: string): Use[] {
  switch (resource.kind) {
    case 'instance':
    case 'job':
    case 'task':
    case 'spare':
    case 'volume':
      return usesOfFields(resource.spec, project);
    case 'workload':
    case 'warmPool':
    case 'jobTemplate':
      return usesOfFields(resource.spec.template.spec, project).map((use) => ({
        ...use,
        field: use.field.replace(/^spec/, 'spec.template.spec'),
      }));
    case 'webhook':
      return usesOfWebhook(resource.spec, project);
    case 'pool':
      return usesOfPool(resource.spec);
    default:
      return [];
  }
}

/** Its schedule drains hosts: to let it, or to change what it does then, takes the right to. */
function usesOfPool({ rebalance }: PoolSpec): Use[] {
  if (rebalance?.mode !== 'apply') return [];
  const question = { verb: 'drain', resource: 'host' } as const;
  return [{ question, field: 'spec.rebalance', name: canonicalJson({ ...rebalance }) }];
}

/** It gets what its creator may read. */
function usesOfWebhook({ secrets, allProjects, events }: WebhookSpec, project: string): Use[] {
  const reads = { verb: 'read', resource: 'event' } as const;
  const question = allProjects ? reads : { ...reads, project };
  return [
    { question, field: allProjects ? 'spec.allProjects' : 'spec.events', name: allProjects ? '*' : events.join(',') },
    ...secrets.map(({ secret }, i) => ({
      question: { verb: 'use', resource: 'secret', project } as const,
      field: `spec.secrets[${i}]`,
      name: secret,
    })),
  ];
}

function usesOfFields(spec: Fields, project: string): Use[] {
  const uses: Use[] = [];
  const use = (resource: Question['resource'], name: string | undefined, field: string): void => {
    // The reservation of a task ends when an instance takes it over.
    const verb = resource === 'task' ? 'delete' : 'use';
    if (name !== undefined) uses.push({ question: { verb, resource, project }, field, name });
  };
  use('image', spec.image, 'spec.image');
  use('image', spec.label, 'spec.label');
  use('size', spec.size, 'spec.size');
  use('pool', spec.placement?.pool, 'spec.placement.pool');
  use('task', spec.placement?.task, 'spec.placement.task');
  if ((spec.priority ?? 0) > 0) use('priority', String(spec.priority), 'spec.priority');
  if (spec.preemption === 'LowerPriority') use('priority', spec.preemption, 'spec.preemption');
  for (const [i, { name }] of (spec.volumes ?? []).entries()) use('volume', name, `spec.volumes[${i}].name`);
  for (const [i, { image }] of (spec.containers ?? []).entries()) use('image', image, `spec.containers[${i}].image`);
  use('volume', spec.source?.volume, 'spec.source.volume');
  for (const { secret, field } of secretsNamedBy(spec)) use('secret', secret, field);
  return uses;
}

/** Those of `now` that `before` has not. */
export function newUses(now: readonly Use[], before: readonly Use[]): Use[] {
  const known = new Set(before.map(keyOfUse));
  return now.filter((use) => !known.has(keyOfUse(use)));
}

function keyOfUse({ question, name }: Use): string {
  return `${question.resource}/${name}`;
}
