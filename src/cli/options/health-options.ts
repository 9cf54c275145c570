// The flags of health checks: one attempt, used for one check or several. Checks that differ are written in a file.

import type { Command } from 'commander';
import { type Check, type CheckName, checkNames } from '../../api/resources/check.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { usageError } from '../exit-codes.ts';
import { oneOf } from './place-options.ts';
import { parseDurationMs, parseInteger } from './units.ts';

export interface HealthOptions {
  readonly healthTcp?: string;
  readonly healthHttp?: string;
  readonly healthExec?: string;
  readonly healthImage?: true;
  readonly healthFor?: string;
  readonly healthPeriod?: string;
  readonly healthTimeout?: string;
  readonly healthFailures?: string;
}

export function withHealthOptions(command: Command): Command {
  return command
    .option('--health-tcp <port>', 'check that the guest accepts a TCP connection at this port')
    .option('--health-http <port[/path]>', 'check that GET of this port and path is answered with 200 to 399')
    .option('--health-exec <command>', 'check that this line for /bin/sh in the guest ends with code 0')
    .option('--health-image', 'check with the HEALTHCHECK of the container image')
    .option(
      '--health-for <checks>',
      `purposes of the check, separated by commas: ${checkNames.join(', ')}; default: readiness`,
    )
    .option('--health-period <duration>', 'time between attempts: 5s, 1m; default: 10s')
    .option('--health-timeout <duration>', 'time for one attempt; default: 1s')
    .option('--health-failures <number>', 'failed attempts in a row after which the check fails; default: 3');
}

export function checksOf(options: HealthOptions): Partial<Pick<InstanceSpec, 'checks'>> {
  const attempt = attemptOf(options);
  const { healthFor, healthPeriod, healthTimeout, healthFailures } = options;
  if (attempt === undefined) {
    const lonely = { healthFor, healthPeriod, healthTimeout, healthFailures };
    const [given] = Object.entries(lonely).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    if (given === undefined) return {};
    throw usageError(`--health-${given.slice('health'.length).toLowerCase()} needs a check`, 'add --health-tcp PORT');
  }
  const check: Check = {
    ...attempt,
    ...(healthPeriod === undefined ? {} : { periodMs: parseDurationMs('--health-period', healthPeriod) }),
    ...(healthTimeout === undefined ? {} : { timeoutMs: parseDurationMs('--health-timeout', healthTimeout) }),
    ...(healthFailures === undefined
      ? {}
      : { failures: parseInteger('--health-failures', healthFailures, { min: 1, max: 1000 }) }),
  };
  return { checks: Object.fromEntries(namesOf(healthFor).map((name) => [name, check])) };
}

function namesOf(text: string | undefined): CheckName[] {
  return (text ?? 'readiness').split(',').map((name) => oneOf('--health-for', name.trim(), checkNames));
}

function attemptOf({ healthTcp, healthHttp, healthExec, healthImage }: HealthOptions): Check | undefined {
  const found: Check[] = [
    ...(healthTcp === undefined ? [] : [{ tcp: { port: parseCheckPort('--health-tcp', healthTcp) } }]),
    ...(healthHttp === undefined ? [] : [{ http: parseHttp(healthHttp) }]),
    ...(healthExec === undefined ? [] : [{ exec: { command: ['/bin/sh', '-c', healthExec] } }]),
    ...(healthImage === undefined ? [] : [{ image: {} }]),
  ];
  if (found.length > 1)
    throw usageError(
      'a check attempts one thing',
      'give one of --health-tcp, --health-http, --health-exec, --health-image',
    );
  return found[0];
}

const parseCheckPort = (flag: string, text: string): number => parseInteger(flag, text, { min: 1, max: 65_535 });

/** `8080`, `8080/healthz`. */
function parseHttp(text: string): NonNullable<Check['http']> {
  const [, port = '', path = ''] = /^(\d+)(\/.*)?$/.exec(text) ?? [];
  if (port === '') throw usageError(`--health-http cannot be "${text}"`, 'write its port and path: 8080/healthz');
  return { port: parseCheckPort('--health-http', port), ...(path === '' ? {} : { path }) };
}
