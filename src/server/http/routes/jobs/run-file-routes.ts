// Routes of what runs produce: agents append to the log and the artifacts of a run, users read those of a job.

import { ApiError } from '../../../../api/errors.ts';
import { parse } from '../../../../api/parse.ts';
import { isFinal, type Job, type JobAttempt } from '../../../../api/resources/job.ts';
import { jobRoutes, runPart, runRoutes } from '../../../../api/routes/jobs.ts';
import { assertMayOn } from '../../../../core/access/may.ts';
import { about } from '../../../../core/access/question.ts';
import { hostInSession } from '../../../../core/operations/host.ts';
import { jobLabel } from '../../../../core/operations/jobs/attempt.ts';
import { jobsOf } from '../../../../core/state/jobs.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import type { Decider } from '../../../decide.ts';
import { JobLog } from '../../../runs/job-log.ts';
import type { RunFiles } from '../../../runs/run-files.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { bytesOf } from '../bytes-of.ts';
import { findOne } from '../find-resource.ts';

export function runFileRoutes({
  decider: { cache, clock },
  runFiles,
}: {
  readonly decider: Decider;
  readonly runFiles: RunFiles;
}): Route[] {
  return [
    bind(runRoutes.put, async ({ params, query: { epoch, incarnation, offset }, body }) => {
      const { host, name: instanceId } = params;
      const part = parse(runPart, params.part, 'part');
      hostInSession(cache, host, epoch);
      assertWritable(cache, { host, instanceId, incarnation });
      const size = await runFiles.append({ instanceId, part }, { offset, bytes: bytesOf(body) });
      return { status: 200, json: { size } };
    }),
    bind(jobRoutes.log, async ({ params, query: { project, attempt, offset, follow } }, { caller, signal }) => {
      const { key, value } = findOne('job', cache, { caller, name: params.name, project });
      assertMayOn(cache, caller.principal, 'logs', value);
      const number = attempt ?? Math.max(1, value.status.attempt);
      if (attempt !== undefined && !(follow && !isFinal(value.status.phase))) attemptOf(value, attempt);
      await assertKept(runFiles, value, number);
      const log = new JobLog({ cache, runFiles, clock }, { key, id: value.metadata.id, attempt: number });
      return {
        status: 200,
        bytes: log.read({ offset, follow }, signal),
        question: about('logs', value),
        headers: { 'berth-log-offset': String(offset), 'berth-job-attempt': String(number) },
      };
    }),
    bind(jobRoutes.artifacts, async ({ params, query: { project, attempt } }, { caller }) => {
      const { value } = findOne('job', cache, { caller, name: params.name, project });
      assertMayOn(cache, caller.principal, 'logs', value);
      const file = { instanceId: artifactsOf(value, attempt).instanceId, part: 'artifacts' } as const;
      const size = await runFiles.size(file);
      if (size === 0) throw noArtifacts(value);
      return {
        status: 200,
        bytes: runFiles.read(file),
        headers: { 'content-type': 'application/x-tar', 'content-length': String(size) },
      };
    }),
  ];
}

/** A host may write what the run of its own guest produces, until the run's outcome is recorded. Throws `NotFound`. */
function assertWritable(
  snapshot: Snapshot,
  { host, instanceId, incarnation }: { host: string; instanceId: string; incarnation: number },
): void {
  const allocation = snapshot.get('allocation', keys.allocation(instanceId, incarnation))?.value;
  const instance = snapshot.instanceById(instanceId);
  const current = instance?.value.status.host === host && instance.value.status.incarnation === incarnation;
  if (!instance?.value.spec.run || !current || allocation?.host !== host)
    throw new ApiError(
      'NotFound',
      `host "${host}" has no run of instance "${instanceId.slice(0, 80)}", incarnation ${incarnation}`,
    );
  const { metadata, status } = instance.value;
  const jobKey = jobsOf(snapshot).ofInstance(instance.key);
  const job = jobKey === undefined ? undefined : snapshot.get('job', jobKey)?.value;
  const attempt = job?.status.attempts.find((each) => each.instanceId === instanceId);
  const over = attempt
    ? attempt.outcome !== undefined
    : jobLabel in metadata.labels || status.guest?.run?.state === 'ended';
  if (over) throw new ApiError('NotFound', `the run of instance "${metadata.name}" is over: it takes no more output`);
}

/** Throws `NotFound` for the log of an attempt that is over, when it is not here any more. */
async function assertKept(runFiles: RunFiles, { metadata, status }: Job, number: number): Promise<void> {
  const attempt = status.attempts.find((each) => each.number === number);
  if (attempt?.outcome === undefined || (attempt.logBytes ?? 0) === 0) return;
  if ((await runFiles.size({ instanceId: attempt.instanceId, part: 'log' })) > 0) return;
  throw new ApiError(
    'NotFound',
    `the log of attempt ${number} of job "${metadata.name}" is not kept any more, or this control plane does not share the blobDir of the one that has it`,
  );
}

/** Throws `NotFound`. */
function attemptOf({ metadata: { name }, status: { attempts } }: Job, number: number): JobAttempt {
  const found = attempts.find((each) => each.number === number);
  if (found) return found;
  const last = attempts.at(-1)?.number;
  const known = last === undefined ? 'it has none yet' : `the last is ${last}`;
  throw new ApiError('NotFound', `job "${name}" has no attempt ${number}: ${known}`, { field: 'attempt' });
}

/** The attempt whose artifacts are complete. Throws `NotFound`. */
function artifactsOf(job: Job, number: number | undefined): JobAttempt {
  const { metadata, status } = job;
  const attempt = number === undefined ? status.attempts.at(-1) : attemptOf(job, number);
  if (attempt?.outcome !== undefined) return attempt;
  throw new ApiError(
    'NotFound',
    isFinal(status.phase)
      ? `job "${metadata.name}" was never started, so it has no artifacts`
      : `job "${metadata.name}" has no artifacts yet: its phase is ${status.phase}`,
  );
}

function noArtifacts({ metadata: { name }, spec }: Job): ApiError {
  return new ApiError(
    'NotFound',
    spec.artifacts.length === 0
      ? `job "${name}" keeps no artifacts: its spec.artifacts is empty`
      : `job "${name}" has no artifacts: no file matched, or they were removed to make room for those of newer jobs`,
  );
}
