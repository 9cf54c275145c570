import { expect, it } from 'vitest';
import type { AnyResource } from '../../api/resources/index.ts';
import { testGroup, testImage, testInstance, testJob, testTask, testVolume } from '../testing.ts';
import { newUses, usesOf } from './uses.ts';

const told = (resource: AnyResource): string[] =>
  usesOf(resource, 'web').map(
    ({ question: { verb, resource: used, project }, field, name }) =>
      `${verb} ${used} ${name} in ${project} for ${field}`,
  );

function testPool(schedule: { readonly mode: 'suggest' | 'apply' }): AnyResource {
  const rebalance = { cron: '0 3 * * *', ...schedule };
  return { ...testGroup('a'), kind: 'pool', spec: { description: '', rebalance }, status: {} } as AnyResource; // its defaults do not matter
}

it.each<[string, AnyResource, readonly string[]]>([
  ['a plain instance', testInstance('a'), ['use image tiny in web for spec.image']],
  [
    'an instance of everything',
    testInstance('a', {
      size: 'small',
      priority: 1,
      preemption: 'LowerPriority',
      placement: { pool: 'gpu', task: 'kept', group: 'g' },
      volumes: [{ name: 'data' }, { name: 'logs' }],
    }),
    [
      'use image tiny in web for spec.image',
      'use size small in web for spec.size',
      'use pool gpu in web for spec.placement.pool',
      'delete task kept in web for spec.placement.task',
      'use priority 1 in web for spec.priority',
      'use priority LowerPriority in web for spec.preemption',
      'use volume data in web for spec.volumes[0].name',
      'use volume logs in web for spec.volumes[1].name',
    ],
  ],
  ['priority 0', testInstance('a', { priority: 0, preemption: 'Never' }), ['use image tiny in web for spec.image']],
  ['a priority below 0', testInstance('a', { priority: -5 }), ['use image tiny in web for spec.image']],
  [
    'a job',
    testJob('a', { label: 'tiny', priority: 3, placement: { pool: 'gpu' } }),
    [
      'use image tiny in web for spec.label',
      'use pool gpu in web for spec.placement.pool',
      'use priority 3 in web for spec.priority',
    ],
  ],
  [
    'containers of other images',
    testInstance('a', { containers: [{ name: 'main', image: 'shop', env: {}, ports: [] }] }),
    ['use image tiny in web for spec.image', 'use image shop in web for spec.containers[0].image'],
  ],
  ['a task', testTask('a', { size: 'small' }), ['use size small in web for spec.size']],
  ['a volume', testVolume('a'), []],
  [
    'a copy of a volume',
    testVolume('a', { source: { volume: 'b', snapshot: 's' } }),
    ['use volume b in web for spec.source.volume'],
  ],
  ['a group', testGroup('a'), []],
  ['a pool with plans that are shown', testPool({ mode: 'suggest' }), []],
  [
    'a pool with plans that are carried out',
    testPool({ mode: 'apply' }),
    ['drain host {"cron":"0 3 * * *","mode":"apply"} in undefined for spec.rebalance'],
  ],
  ['an image', testImage(), []],
])('%s', (_name, resource, expected) => {
  expect(told(resource)).toEqual(expected);
});

it('asks only about what a change adds', () => {
  const before = testInstance('a', { priority: 5, volumes: [{ name: 'data' }] });
  const after = testInstance('a', { priority: 6, volumes: [{ name: 'logs' }, { name: 'data', readOnly: true }] });
  const added = newUses(usesOf(after, 'web'), usesOf(before, 'web')).map(({ field }) => field);
  expect(added).toEqual(['spec.priority', 'spec.volumes[0].name']);
  expect(newUses(usesOf(before, 'web'), usesOf(before, 'web'))).toEqual([]);
});
