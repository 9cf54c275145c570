import { describe, expect, it } from 'vitest';
import type { EngineContainer } from './engine-answers.ts';
import { groupState, type SeenContainer } from './group-state.ts';

interface Seen {
  readonly status?: string;
  readonly code?: number;
  readonly endedAt?: string;
  readonly outOfMemory?: boolean;
  readonly health?: string;
}

function seen(name: string, { status = 'running', code = 0, endedAt, outOfMemory, health }: Seen = {}): SeenContainer {
  const container: EngineContainer = {
    Id: name,
    Image: 'sha256:0',
    State: {
      Status: status,
      ExitCode: code,
      ...(endedAt === undefined ? {} : { FinishedAt: endedAt }),
      ...(outOfMemory === undefined ? {} : { OOMKilled: outOfMemory }),
      ...(health === undefined ? {} : { Health: { Status: health } }),
    },
    Config: health === undefined ? {} : { Healthcheck: { Test: ['CMD', 'true'] } },
    HostConfig: { Memory: 64 * 1024 ** 2 },
    NetworkSettings: { IPAddress: '', Networks: { podman: { IPAddress: '10.88.0.2' } } },
  };
  return { name, container };
}
const ended = (code: number, more: Seen = {}): Seen => ({ status: 'exited', code, ...more });

describe('a group of containers', () => {
  const rows: [name: string, containers: SeenContainer[], expected: object][] = [
    ['runs while all do', [seen('a'), seen('b')], { is: 'running', ready: true, address: '10.88.0.2', unchecked: [] }],
    [
      'runs while one does, when the other ended with 0',
      [seen('a'), seen('b', ended(0))],
      { is: 'running', ready: true },
    ],
    [
      'is not ready while a health check has not passed',
      [seen('a'), seen('b', { health: 'starting' })],
      { is: 'running', ready: false, unchecked: ['b'] },
    ],
    [
      'is not sick, and not checked, while it stands still',
      [seen('a', { status: 'paused', health: 'unhealthy' }), seen('b', { status: 'paused', health: 'starting' })],
      { is: 'running', ready: false, unchecked: [], paused: ['a', 'b'], going: [] },
    ],
    [
      'tells who stands still and who does not',
      [seen('a', { status: 'paused' }), seen('b'), seen('c', ended(0))],
      { is: 'running', paused: ['a'], going: ['b'] },
    ],
    ['is ready when the health check has passed', [seen('a', { health: 'healthy' })], { is: 'running', ready: true }],
    [
      'is in trouble when the health check fails',
      [seen('a', { health: 'unhealthy' })],
      { is: 'running', ready: false, trouble: { code: 'Unhealthy', message: expect.stringContaining('"a"') } },
    ],
    [
      'has ended when all have',
      [seen('a', ended(0)), seen('b', ended(0))],
      { is: 'ended', verdict: { state: 'exited', reason: { code: 'ContainersEnded' } } },
    ],
    [
      'fails with the first that does',
      [seen('a'), seen('b', ended(3))],
      {
        is: 'failing',
        left: ['a'],
        verdict: {
          state: 'failed',
          reason: { code: 'ContainerExited', message: 'container "b" ended with exit code 3; its log may say why' },
        },
      },
    ],
    [
      'blames the one that ended first',
      [
        seen('a', ended(137, { endedAt: '2026-01-01T00:00:09Z' })),
        seen('b', ended(3, { endedAt: '2026-01-01T00:00:02.5Z' })),
      ],
      { is: 'ended', verdict: { reason: { message: expect.stringContaining('"b"') } } },
    ],
    [
      'says that memory was used up where the engine does',
      [seen('a', ended(137, { outOfMemory: true }))],
      {
        verdict: {
          reason: {
            message: 'container "a" was killed because it used up its 64 MiB of memory (exit code 137); give it more',
          },
        },
      },
    ],
    [
      'says what else a kill may mean',
      [seen('a', ended(137))],
      { verdict: { reason: { message: expect.stringContaining('or by a person') } } },
    ],
    [
      'fails when one was removed by others',
      [seen('a'), { name: 'b', container: null }],
      { is: 'failing', verdict: { reason: { message: 'container "b" was removed, not by Berth' } } },
    ],
    [
      'fails when one was never started',
      [seen('a'), seen('b', { status: 'created' })],
      { is: 'failing', verdict: { reason: { message: 'container "b" was never started' } } },
    ],
  ];
  it.each(rows)('%s', (_name, containers, expected) => {
    expect(groupState(containers, false)).toMatchObject(expected);
  });

  it('that is being stopped ends only when all have, however they do', () => {
    expect(groupState([seen('a'), seen('b', ended(143))], true)).toMatchObject({ is: 'running' });
    expect(groupState([seen('a', ended(0)), seen('b', ended(143))], true)).toMatchObject({ is: 'ended' });
  });
});
