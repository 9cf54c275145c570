// Checks, from the request to the assignment for their host, and back with the report.

import { describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { InstanceSpec } from '../../../api/resources/instance.ts';
import { guestConditions } from '../../state/guest-phase.ts';
import { testCache, testContext, testImage } from '../../testing.ts';
import { createInstance } from '../instance.ts';

const shop = testImage('shop', { format: 'container', source: 'docker://docker.io/acme/shop:1' });

/** Like a user's request: parsed by schema, then decided. Returns the refused field and the reason. */
function answerTo(spec: object): string {
  try {
    const parsed = parse(InstanceSpec, { image: 'tiny', ...spec }, 'spec');
    const input = { project: 'default', name: 'one', labels: {}, spec: parsed };
    createInstance(testCache([testImage(), shop]), input, testContext());
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'field' in error ? `${String(error.field)}: ${error.message}` : String(error);
  }
}

const container = { image: 'shop', containers: [{ name: 'web' }, { name: 'side' }] };
const tcp = { port: 80 };

describe('the checks of an instance', () => {
  const rows: [name: string, spec: object, answer: RegExp][] = [
    ['all three', { checks: { startup: { tcp, failures: 30 }, readiness: { tcp }, liveness: { tcp } } }, /^accepted$/],
    ['http with a path', { checks: { readiness: { http: { port: 80, path: '/healthz?deep=1' } } } }, /^accepted$/],
    [
      'a command in a container',
      { ...container, checks: { readiness: { exec: { command: ['true'], container: 'side' } } } },
      /^accepted$/,
    ],
    ['the HEALTHCHECK of an image', { image: 'shop', checks: { readiness: { image: {} } } }, /^accepted$/],
    ['none at all', { checks: {} }, /^spec\.checks/],
    [
      'nothing to attempt',
      { checks: { readiness: { periodMs: 5000 } } },
      /^spec\.checks\.readiness: a check needs one of: tcp, http, exec, image/,
    ],
    ['two attempts', { checks: { readiness: { tcp, http: tcp } } }, /^spec\.checks\.readiness\.http: .*tcp and http/],
    ['no port', { checks: { liveness: { tcp: {} } } }, /^spec\.checks\.liveness\.tcp\.port/],
    ['no port of http', { checks: { liveness: { http: { path: '/' } } } }, /^spec\.checks\.liveness\.http\.port/],
    [
      'a port that cannot be',
      { checks: { readiness: { tcp: { port: 70_000 } } } },
      /^spec\.checks\.readiness\.tcp\.port/,
    ],
    ['no command', { checks: { readiness: { exec: { command: [] } } } }, /^spec\.checks\.readiness\.exec\.command/],
    [
      'a path that is none',
      { checks: { readiness: { http: { port: 80, path: 'healthz' } } } },
      /^spec\.checks\.readiness\.http\.path/,
    ],
    ['attempts without a pause', { checks: { readiness: { tcp, periodMs: 1 } } }, /^spec\.checks\.readiness\.periodMs/],
    [
      'liveness with two successes',
      { checks: { liveness: { tcp, successes: 2 } } },
      /^spec\.checks\.liveness\.successes/,
    ],
    [
      'HEALTHCHECK of a virtual machine',
      { checks: { readiness: { image: {} } } },
      /^spec\.checks\.readiness\.image: .*virtual machine/,
    ],
    [
      'a container of a virtual machine',
      { checks: { readiness: { exec: { command: ['true'], container: 'web' } } } },
      /^spec\.checks\.readiness\.exec\.container/,
    ],
    [
      'a container that is none',
      { ...container, checks: { liveness: { image: { container: 'x' } } } },
      /^spec\.checks\.liveness\.image\.container: .*web, side/,
    ],
    [
      'a driver that cannot',
      { placement: { driver: 'zones' }, checks: { readiness: { tcp } } },
      /^spec\.checks\.readiness\.tcp: the driver "zones"/,
    ],
    ['a driver that can', { placement: { driver: 'qemu' }, checks: { readiness: { tcp } } }, /^accepted$/],
  ];
  it.each(rows)('%s', (_, spec, answer) => {
    expect(answerTo(spec)).toMatch(answer);
  });
});

it('a guest that a check holds back is not ready for that reason', () => {
  const failing = { name: 'readiness', message: 'the readiness check failed: refused' } as const;
  const guest = { state: 'running', ready: false, failing, ports: [], phases: [] } as const;
  expect(guestConditions({ ...guest, ports: [], phases: [] })).toMatchObject([
    { type: 'Running', status: 'True' },
    { type: 'Ready', status: 'False', reason: 'ReadinessCheck', message: failing.message },
  ]);
});
