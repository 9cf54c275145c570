// The live log of one attempt of a job. The URL names the attempt, so that links to lines stay valid.

import { SegmentedControl, Stack } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useSearchParams } from 'react-router';
import type { Job } from '../../../src/api/resources/job.ts';
import { Command } from '../../parts/command.tsx';
import { followRunLog, type RunLogState } from '../../parts/log/follow-run-log.ts';
import { LogView } from '../../parts/log/log-view.tsx';
import { projectFlag } from '../resource/commands.ts';
import { hasEnded } from './job-state.ts';

export function JobLog({ job }: { readonly job: Job }): ReactNode {
  const [search, setSearch] = useSearchParams();
  const { attempts, attempt: last } = job.status;
  const asked = Number(search.get('attempt'));
  const number = Number.isInteger(asked) && asked > 0 ? asked : Math.max(1, last);
  return (
    <Stack gap="xs">
      {attempts.length < 2 ? null : (
        <SegmentedControl
          size="xs"
          aria-label="Attempt"
          value={String(number)}
          onChange={(value) => setSearch((before) => withAttempt(before, value), { replace: true })}
          data={attempts.map((each) => ({ value: String(each.number), label: `Attempt ${each.number}` }))}
        />
      )}
      <AttemptLog job={job} number={number} key={number} />
    </Stack>
  );
}

function withAttempt(search: URLSearchParams, value: string): URLSearchParams {
  const after = new URLSearchParams(search);
  after.set('attempt', value);
  return after;
}

function AttemptLog({ job, number }: { readonly job: Job; readonly number: number }): ReactNode {
  const { name, project } = job.metadata;
  const [state, setState] = useState<RunLogState>();
  const over = useRef(false);
  useEffect(() => {
    over.current = hasEnded(job) || job.status.attempts.some((each) => each.number === number && each.outcome);
  }, [job, number]);
  useEffect(
    () => followRunLog({ name, project, attempt: number, isOver: () => over.current }, setState),
    [name, project, number],
  );
  const raw = `/v1/jobs/${encodeURIComponent(name)}/log?project=${encodeURIComponent(project)}&attempt=${number}`;
  return (
    <>
      <Command words={`berth job logs ${name} --attempt ${number}${projectFlag(project)}`} />
      {state === undefined ? null : <LogView state={state} fileName={`${name}-${number}`} rawHref={raw} />}
    </>
  );
}
