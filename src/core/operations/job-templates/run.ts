// A job of a template: its spec, with the values of the parameters as environment variables.

import { ApiError } from '../../../api/errors.ts';
import { nearest } from '../../../api/nearest.ts';
import { type JobTemplate, jobTemplateLabel } from '../../../api/resources/job-template.ts';
import type { Labels } from '../../../api/resources/metadata.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { earlierCreate } from '../create.ts';
import type { Decision } from '../decision.ts';
import type { JobInput } from '../jobs/job.ts';
import { submitJob } from '../jobs/submit-job.ts';
import { existing } from '../replace.ts';

export interface RunInput {
  readonly project: string;
  readonly name: string;
  /** Of the job; empty: `TEMPLATE-xxxx`. */
  readonly jobName: string;
  readonly labels: Labels;
  readonly parameters: Readonly<Record<string, string>>;
  readonly idempotencyKey?: string;
}

/** Creates a job. Throws `InvalidRequest` for a parameter that is missing or unknown. */
export function runJobTemplate(snapshot: Snapshot, input: RunInput, ctx: Context): Decision {
  const { project, name, jobName, labels, parameters, idempotencyKey } = input;
  const entry = existing(snapshot, 'jobTemplate', keys.jobTemplate(project, name));
  const { value } = entry;
  const job = {
    ...jobInput(value, parameters),
    name: jobName,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  const asked = { ...job, labels: { ...job.labels, ...labels, [jobTemplateLabel]: name } };
  const earlier = earlierCreate(snapshot, asked, 'job');
  if (earlier) return earlier;
  const decision = submitJob(snapshot, asked, ctx);
  const counted = { ...value, status: { ...value.status, jobs: value.status.jobs + 1 } };
  const changes = [...decision.plan.changes, { key: entry.key, ifRevision: entry.revision, value: counted }];
  return { ...decision, plan: { ...decision.plan, changes } };
}

/** Without a name. */
export function jobInput({ metadata, spec }: JobTemplate, given: Readonly<Record<string, string>>): JobInput {
  const { template } = spec;
  return {
    project: metadata.project,
    ...{ name: '', stem: metadata.name },
    labels: { ...template.labels, [jobTemplateLabel]: metadata.name },
    spec: { ...template.spec, env: { ...template.spec.env, ...valuesOf(spec, given) } },
  };
}

function valuesOf(
  { parameters, template }: JobTemplate['spec'],
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = parameters.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const meant = nearest(name, names);
    const advice = meant === undefined ? `it has ${names.join(', ') || 'none'}` : `did you mean "${meant}"?`;
    refuse(name, `the template has no parameter "${name}"; ${advice}`);
  }
  const values: Record<string, string> = {};
  for (const { name, default: usual } of parameters) {
    const value = given[name] ?? usual;
    if (value !== undefined) values[name] = value;
    else if (template.spec.env[name] === undefined) refuse(name, `parameter "${name}" has no default; give it a value`);
  }
  return values;
}

function refuse(name: string, message: string): never {
  throw new ApiError('InvalidRequest', message, { field: `spec.parameters.${name}` });
}
