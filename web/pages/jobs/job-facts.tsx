// The facts of a job that people look for first.

import { Code } from '@mantine/core';
import type { ReactNode } from 'react';
import { runPathDefault } from '../../../src/api/resources/run.ts';
import type { Job } from '../../../src/api/resources/job.ts';
import { type Fact, FactTable } from '../../parts/fact-table.tsx';
import { useNow } from '../../parts/standing.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { exactTime, spanText } from '../../parts/units.ts';
import { labelOf, ranMs, reasonOf } from './job-state.ts';

const scriptShownMax = 2_000;

export function JobFacts({ job }: { readonly job: Job }): ReactNode {
  const nowMs = useNow(1_000);
  const { metadata, spec } = job;
  const ran = ranMs(job, nowMs);
  const labels = Object.entries(metadata.labels).map(([name, value]) => `${name}=${value}`);
  const facts: readonly (Fact | undefined)[] = [
    ['Why', <Text key="why">{reasonOf(job, nowMs) || '–'}</Text>],
    ['Project', metadata.project],
    ['Runs on', <Text key="on">{labelOf(job)}</Text>],
    spec.repo && ['Commit', <Text key="commit">{`${spec.repo.commit} of ${spec.repo.url}`}</Text>],
    spec.script === undefined
      ? ['Program', <Text key="path">{spec.repo?.path ?? runPathDefault}</Text>]
      : [
          'Program',
          <Code block key="script" tabIndex={0} role="region" aria-label="Program" mah={200}>
            {visibleText(spec.script.slice(0, scriptShownMax)).replaceAll('⟨U+000A⟩', '\n')}
            {spec.script.length > scriptShownMax ? '\n…' : ''}
          </Code>,
        ],
    ['Ran for', ran === undefined ? 'not started' : spanText(ran)],
    ['Time limit', spanText(spec.timeoutMs)],
    ['Keeps', <Text key="keeps">{spec.artifacts.join(', ') || 'no artifacts'}</Text>],
    labels.length === 0 ? undefined : ['Labels', <Text key="labels">{labels.join(' ')}</Text>],
    ['Created', exactTime(metadata.createdAtMs)],
  ];
  return <FactTable facts={facts.filter((fact) => fact !== undefined)} />;
}
