// Tools that ask for work: plan and run an instance, run a job. What they may run is small on purpose: no user-data, no volumes, no ways
// into guests.

import { type Static, Type } from 'typebox';
import { JobSpec } from '../../../api/resources/job.ts';
import { InstanceSpec } from '../../../api/resources/instance.ts';
import { Name } from '../../../api/resources/metadata.ts';
import { type ToolContext, tool } from '../tool.ts';
import { cleanValue } from '../untrusted.ts';
import { closed, project } from './fields.ts';

const { image, size, cpus, memoryMiB, diskGiB, sshKeys } = InstanceSpec.properties;
const { pool } = InstanceSpec.properties.placement.properties;

const instanceFields = {
  name: Type.String({ ...Name, description: 'of the new instance; one that exists is not replaced' }),
  project,
  image,
  size,
  cpus,
  memoryMiB,
  diskGiB,
  pool,
  sshKeys: Type.Optional(sshKeys),
};
const planHash = Type.String({ maxLength: 64, description: 'as "plan" answered it to the same arguments' });

const InstanceRequest = Type.Object(instanceFields, closed);
type InstanceRequest = Static<typeof InstanceRequest>;

function newInstance({ name, project: asked, pool: inPool, ...spec }: InstanceRequest, { project: own }: ToolContext) {
  const placement = inPool === undefined ? {} : { placement: { pool: inPool } };
  return { metadata: { name, project: asked ?? own }, spec: { ...spec, ...placement } };
}

export const planTool = tool({
  name: 'plan',
  title: 'Plan an instance',
  description:
    'Says where an instance would run, or why it would wait. Nothing is created or reserved. Answers the planHash that "run" needs.',
  input: InstanceRequest,
  async run(request, context) {
    const body = newInstance(request, context);
    const { explanation, spec } = await context.client.plan(body, { limit: 5 });
    const { image: of, size: as, cpus: count, memoryMiB: memory, diskGiB: disk } = spec;
    return {
      facts: { planHash: context.planHash.of('run', body) },
      untrusted: cleanValue({
        spec: { image: of, size: as, cpus: count, memoryMiB: memory, diskGiB: disk },
        explanation,
      }),
    };
  },
});

export const runTool = tool({
  name: 'run',
  title: 'Run an instance',
  description: 'Creates the instance that "plan" was asked about. Repeating the call creates no second one.',
  input: Type.Object({ ...instanceFields, planHash }, closed),
  writes: true,
  async run({ planHash: hash, ...request }, context) {
    const body = newInstance(request, context);
    context.planHash.check('run', body, hash);
    const { metadata, status } = await context.client.create('instance', body, {
      idempotencyKey: `mcp-${hash}`,
      signal: context.signal,
    });
    return {
      facts: { created: true },
      untrusted: cleanValue({
        name: metadata.name,
        project: metadata.project,
        id: metadata.id,
        phase: status.phase,
        host: status.host,
      }),
    };
  },
});

const { label, script, timeoutMs } = JobSpec.properties;
const jobFields = {
  name: Type.String({ ...Name, description: 'of the new job; one that exists is not replaced' }),
  project,
  label,
  size,
  script,
  timeoutMs: Type.Optional(timeoutMs),
};
const JobRequest = Type.Object(jobFields, closed);

function newJob({ name, project: asked, ...spec }: Static<typeof JobRequest>, { project: own }: ToolContext) {
  return { metadata: { name, project: asked ?? own }, spec };
}

export const planJobTool = tool({
  name: 'plan_job',
  title: 'Plan a job',
  description:
    'Checks the request of a job: the image of its label, and whether such an instance fits now. Nothing is created. Answers the planHash that "run_job" needs.',
  input: JobRequest,
  async run(request, context) {
    const body = newJob(request, context);
    const { client } = context;
    const wanted = request.size === undefined ? {} : { size: request.size };
    const capacity = await client.candidates({ project: body.metadata.project, spec: wanted, limit: 5 });
    return {
      facts: { planHash: context.planHash.of('run_job', body) },
      untrusted: cleanValue({ candidates: capacity }),
    };
  },
});

export const runJobTool = tool({
  name: 'run_job',
  title: 'Run a job',
  description:
    'Runs a script once in a fresh instance, as "plan_job" was asked about. Answers at once: read its phase with "show" and its output with "logs".',
  input: Type.Object({ ...jobFields, planHash }, closed),
  writes: true,
  async run({ planHash: hash, ...request }, context) {
    const body = newJob(request, context);
    context.planHash.check('run_job', body, hash);
    const { metadata, status } = await context.client.create('job', body, {
      idempotencyKey: `mcp-${hash}`,
      signal: context.signal,
    });
    return {
      facts: { created: true },
      untrusted: cleanValue({ name: metadata.name, project: metadata.project, id: metadata.id, phase: status.phase }),
    };
  },
});
