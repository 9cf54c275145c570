// Instances, workloads, warm pools, jobs and their templates as lists and watches show them: without user-data, environments, the words of the commands of containers, and the
// scripts of programs, all of which may hold secrets. A client that needs those reads the one resource.

import type { AnyResource } from '../../../api/resources/index.ts';
import type { Env } from '../../../api/resources/container.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { WarmPool } from '../../../api/resources/warm-pool.ts';
import type { Workload, WorkloadTemplate } from '../../../api/resources/workload.ts';
import type { Job } from '../../../api/resources/job.ts';
import type { JobTemplate } from '../../../api/resources/job-template.ts';

/** Stands for a value. */
export const hiddenValue = '(hidden)';

export function withoutSecrets(resource: AnyResource): AnyResource {
  if (resource.kind === 'job') return { ...resource, spec: hiddenProgram(resource.spec) };
  if (resource.kind === 'jobTemplate') return withJobTemplate(resource);
  if (resource.kind === 'workload') return withTemplate(resource, resource.spec.template);
  if (resource.kind === 'warmPool') return withTemplate(resource, resource.spec.template);
  if (resource.kind !== 'instance') return resource;
  const spec = withoutSecretsOfSpec(resource.spec);
  return spec === resource.spec ? resource : { ...resource, spec };
}

function withJobTemplate(resource: JobTemplate): JobTemplate {
  const { template, parameters } = resource.spec;
  const spec = {
    ...resource.spec,
    template: { ...template, spec: hiddenProgram(template.spec) },
    parameters: parameters.map((each) => (each.default === undefined ? each : { ...each, default: hiddenValue })),
  };
  return { ...resource, spec };
}

function withTemplate<R extends Workload | WarmPool>(resource: R, template: WorkloadTemplate): R {
  const spec = withoutSecretsOfSpec(template.spec);
  return spec === template.spec
    ? resource
    : { ...resource, spec: { ...resource.spec, template: { ...template, spec } } };
}

/** The same object when there is nothing to hide. */
export function withoutSecretsOfSpec(spec: InstanceSpec): InstanceSpec {
  const { containers, userData, run } = spec;
  return containers === undefined && userData === '' && run === undefined ? spec : hidden(spec);
}

/** Whether the resource has anything that lists hide. */
export function holdsSecrets(resource: AnyResource): boolean {
  if (resource.kind === 'job') return resource.spec.script !== undefined || Object.keys(resource.spec.env).length > 0;
  return withoutSecrets(resource) !== resource;
}

function hidden(spec: InstanceSpec): InstanceSpec {
  const { containers: shown, run } = spec;
  const containers = shown?.map((container) => ({
    ...container,
    ...(container.command === undefined ? {} : { command: container.command.map(() => hiddenValue) }),
    ...(container.args === undefined ? {} : { args: container.args.map(() => hiddenValue) }),
    env: hiddenValues(container.env),
  }));
  return {
    ...spec,
    userData: spec.userData === '' ? '' : hiddenValue,
    ...(containers === undefined ? {} : { containers }),
    ...(run === undefined ? {} : { run: hiddenProgram(run) }),
  };
}

function hiddenProgram<Program extends Pick<Job['spec'], 'env' | 'script'>>(program: Program): Program {
  const { env, script } = program;
  return { ...program, env: hiddenValues(env), ...(script === undefined ? {} : { script: hiddenValue }) };
}

/** References to secrets are shown: they say where a value is, not what it is. */
function hiddenValues(env: Env): Env {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, typeof value === 'string' ? hiddenValue : value]),
  );
}
