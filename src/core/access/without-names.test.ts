import { expect, it } from 'vitest';
import type { Capacity } from '../../api/capacity.ts';
import type { Explanation } from '../../api/explanation.ts';
import type { VerifyReport } from '../../api/verify.ts';
import {
  capacityWithoutGuests,
  capacityWithoutNames,
  explanationWithoutNames,
  verifyReportWithoutNames,
} from './without-names.ts';

const knows = (project: string): boolean => project === 'web';
const instances = ['web/shop', 'theirs/payroll'];
const example = { host: 'theirs-rack', message: 'it is reserved for theirs' };
const refusals = [{ rule: 'nominated', reason: 'Nominated', message: 'it is reserved for theirs' }];

/** What somebody who may read everything is told, with a foreign name wherever there is text. */
const explanation: Explanation = {
  instance: 'shop',
  project: 'web',
  phase: 'Running',
  host: 'rack-1',
  summary: 'placed on rack-1, before theirs-rack',
  profile: 'default',
  amounts: { VCPU: 1 },
  counts: { hosts: 2, fit: 1, refused: 1 },
  reasons: [{ reason: 'Nominated', rule: 'nominated', hosts: 1, alone: 1, examples: [example] }],
  queue: { position: 1, waiting: 2, ahead: instances, projectShare: 0 },
  placed: {
    decision: 'best of theirs-rack and rack-1',
    fitsNow: true,
    better: [{ host: 'theirs-rack', score: 1 }],
    runnersUp: [{ host: 'theirs-rack', score: 1 }],
    changes: ['theirs/payroll has come'],
  },
  preemption: { host: 'theirs-rack', instances },
  nearest: [
    {
      change: 'InstancesEnd',
      message: 'theirs/payroll ends',
      hosts: ['theirs-rack'],
      hostCount: 1,
      cost: 1,
      instances,
    },
  ],
  hosts: [
    { host: 'rack-1', current: true, fits: false, refusals },
    { host: 'theirs-rack', current: false, fits: false, refusals },
  ],
  continue: 'theirs-rack',
};

it('keeps of an explanation what is of the own projects, and counts', () => {
  const told = explanationWithoutNames(explanation, knows);
  expect(JSON.stringify(told)).not.toContain('theirs');
  expect(told).toMatchObject({
    summary: 'placed on rack-1; phase Running',
    counts: explanation.counts,
    reasons: [{ reason: 'Nominated', hosts: 1, examples: [] }],
    queue: { position: 1, waiting: 2, ahead: ['web/shop'] },
    preemption: { instances: ['web/shop'] },
    nearest: [{ change: 'InstancesEnd', hostCount: 1, instances: ['web/shop'] }],
    hosts: [{ host: 'rack-1', current: true, refusals: [{ rule: 'nominated', reason: 'Nominated' }] }],
  });
});

const capacity: Capacity = {
  sizes: [
    { size: 'small', more: 1, stranded: [{ reason: 'InsufficientCpu', hosts: 1, free: {}, examples: [example] }] },
  ],
  losses: [
    {
      hosts: 1,
      worst: [
        {
          hosts: ['theirs-rack'],
          instances: 1,
          unplaced: 1,
          examples: [{ instance: 'theirs/payroll', message: '1 InsufficientCpu' }],
        },
      ],
    },
  ],
} as unknown as Capacity; // without what is of no interest here

it('keeps of the capacity the counts, and hosts for those who may see hosts', () => {
  expect(JSON.stringify(capacityWithoutNames(capacity))).not.toContain('theirs');
  const unnamed = JSON.stringify(capacityWithoutGuests(capacity));
  expect(unnamed).not.toContain('payroll');
  expect(unnamed).toContain('theirs-rack');
});

it('keeps of what does not fit together the code, the host and the age', () => {
  const finding = {
    code: 'Stuck',
    subject: 'instance theirs/payroll',
    message: 'payroll waits',
    cause: 'payroll',
    ageMs: 5,
  } as const;
  const report = {
    findings: [
      { ...finding, host: 'h1' },
      { ...finding, subject: 'host h1', message: 'm' },
    ],
  } as unknown as VerifyReport; // as above
  expect(verifyReportWithoutNames(report).findings).toEqual([
    { code: 'Stuck', subject: 'instance (hidden)', host: 'h1', message: '(hidden)', cause: '(hidden)', ageMs: 5 },
    { ...finding, subject: 'host h1', message: 'm' },
  ]);
});
