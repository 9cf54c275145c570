// A small fleet for tests of commands: two instances, one ready and one pending, and two hosts.

import { type Handler, page, testHost, testInstance, testNowMs } from './testing.ts';

export const ready = {
  guest: {
    state: 'running',
    ready: true,
    address: '192.0.2.7',
    ports: [{ hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
    accelerator: 'tcg',
    phases: [
      { name: 'clone', startedAtMs: 0, durationMs: 120 },
      { name: 'boot', startedAtMs: 0, durationMs: 2_900 },
    ],
  },
  scheduledAtMs: testNowMs - 89_960,
  readyAtMs: testNowMs - 86_500,
};

export const pending = {
  phase: 'Pending',
  host: undefined,
  conditions: [
    {
      type: 'Scheduled',
      status: 'False',
      reason: 'NoHostFits',
      message: '0 of 2 hosts: 2 InsufficientMemory',
      sinceMs: 0,
    },
  ],
};

export const instances = [testInstance('web', { status: ready }), testInstance('big', { status: pending })];

/** Answers with lists of instances and of hosts. */
export const lists: Handler = ({ path, method }) => {
  if (method === 'GET' && path === '/v1/instances') return page(instances);
  if (method === 'GET' && path === '/v1/hosts')
    return page([testHost('h1'), testHost('h2', { spec: { paused: true, pool: 'ci' } })]);
  return undefined;
};
