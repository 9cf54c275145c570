import { expect, it } from 'vitest';
import { findEngineSocket } from './engine-socket.ts';

const rows: [name: string, options: Parameters<typeof findEngineSocket>[0], expected: object][] = [
  [
    'what is configured goes before the environment',
    { configured: '/a.sock', dockerHost: 'unix:///b.sock' },
    { ok: true, path: '/a.sock' },
  ],
  ['a path may be written as a URL', { configured: 'unix:///a.sock' }, { ok: true, path: '/a.sock' }],
  ['DOCKER_HOST is honoured', { dockerHost: 'unix:///b.sock' }, { ok: true, path: '/b.sock' }],
  ['an empty DOCKER_HOST says nothing', { configured: '/a.sock', dockerHost: '' }, { ok: true, path: '/a.sock' }],
  [
    'no engine is spoken to over a network',
    { dockerHost: 'tcp://192.0.2.1:2375' },
    {
      ok: false,
      fault: expect.stringContaining(
        'DOCKER_HOST is "tcp://192.0.2.1:2375": the engine is spoken to by a unix socket only',
      ),
    },
  ],
];

it.each(rows)('%s', async (_name, options, expected) => {
  expect(await findEngineSocket(options)).toEqual(expected);
});
