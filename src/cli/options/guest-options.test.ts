// The flags of checks, restarts and lifetimes, as parts of a spec.

import { describe, expect, it } from 'vitest';
import { checksOf, type HealthOptions } from './health-options.ts';
import { lifetimeOf, type LifetimeOptions } from './lifetime-options.ts';
import { restartOf, type RestartOptions } from './restart-options.ts';

const answer = (act: () => unknown): unknown => {
  try {
    return act();
  } catch (error) {
    return error instanceof Error ? error.message : error;
  }
};

describe('the flags of health checks', () => {
  const tcp = { tcp: { port: 80 } };
  const rows: [name: string, options: HealthOptions, answer: unknown][] = [
    ['none', {}, {}],
    ['a port', { healthTcp: '80' }, { checks: { readiness: tcp } }],
    ['a page', { healthHttp: '8080/healthz' }, { checks: { readiness: { http: { port: 8080, path: '/healthz' } } } }],
    ['a port that speaks HTTP', { healthHttp: '8080' }, { checks: { readiness: { http: { port: 8080 } } } }],
    [
      'a line for a shell',
      { healthExec: 'test -e /ready' },
      { checks: { readiness: { exec: { command: ['/bin/sh', '-c', 'test -e /ready'] } } } },
    ],
    ['that of the image', { healthImage: true }, { checks: { readiness: { image: {} } } }],
    [
      'for several checks',
      { healthTcp: '80', healthFor: 'readiness, liveness' },
      { checks: { readiness: tcp, liveness: tcp } },
    ],
    [
      'with times',
      { healthTcp: '80', healthPeriod: '5s', healthTimeout: '500ms', healthFailures: '2' },
      { checks: { readiness: { ...tcp, periodMs: 5000, timeoutMs: 500, failures: 2 } } },
    ],
    ['two attempts', { healthTcp: '80', healthImage: true }, 'a check attempts one thing'],
    ['a time of nothing', { healthPeriod: '5s' }, '--health-period needs a check'],
    ['for nothing that there is', { healthTcp: '80', healthFor: 'life' }, '--health-for cannot be "life"'],
    ['no port', { healthHttp: '/healthz' }, '--health-http cannot be "/healthz"'],
  ];
  it.each(rows)('%s', (_, options, expected) => {
    expect(answer(() => checksOf(options))).toEqual(expected);
  });
});

describe('the flags of restarts', () => {
  const rows: [name: string, options: RestartOptions, answer: unknown][] = [
    ['none', {}, {}],
    ['as people know them', { restart: 'on-failure' }, { restartPolicy: 'OnFailure' }],
    ['as the API names them', { restartPolicy: 'Always' }, { restartPolicy: 'Always' }],
    [
      'all',
      { restart: 'always', restartDelay: '1s', restartDelayMax: '1m', restartLimit: '5', restartDisk: 'kept' },
      { restartPolicy: 'Always', restart: { delayMs: 1000, delayMsMax: 60_000, limit: 5, disk: 'kept' } },
    ],
    ['a word that is none', { restart: 'toString' }, '--restart cannot be "toString"'],
    ['a disk that is none', { restartDisk: 'old' }, '--restart-disk cannot be "old"'],
  ];
  it.each(rows)('%s', (_, options, expected) => {
    expect(answer(() => restartOf(options))).toEqual(expected);
  });
});

describe('the flags of lifetimes', () => {
  const rows: [name: string, options: LifetimeOptions, answer: unknown][] = [
    ['none', {}, {}],
    ['a duration', { ttl: '2h' }, { ttlMs: 7_200_000 }],
    ['a time', { expires: '2030-01-31T18:00Z' }, { expiresAtMs: Date.UTC(2030, 0, 31, 18) }],
    ['a time elsewhere', { expires: '2030-01-31T18:00+02:00' }, { expiresAtMs: Date.UTC(2030, 0, 31, 16) }],
    ['a time without a zone', { expires: '2030-01-31T18:00' }, '--expires cannot be "2030-01-31T18:00"'],
    ['protection', { protect: true, stopGrace: '5s' }, { protected: true, stopGraceMs: 5000 }],
  ];
  it.each(rows)('%s', (_, options, expected) => {
    expect(answer(() => lifetimeOf(options))).toEqual(expected);
  });
});
