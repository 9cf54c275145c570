// Health checks as users ask for them: server, agent and command line as processes, a real podman, and the tiny image in a real QEMU.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Instance } from '../src/api/resources/instance.ts';
import { whyNoExecution, whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type PodmanFleet, startPodmanFleet } from './podman-fleet.ts';
import { type Fleet, runBerth } from './processes.ts';
import { tinyFleet } from './tiny-fleet.ts';

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
const readyCondition = ({ status }: Instance) => status.conditions.find(({ type }) => type === 'Ready');

async function berth(fleet: Fleet, ...argv: string[]): Promise<string> {
  const { stdout, stderr, code } = await runBerth(argv, fleet.environment);
  if (code !== 0) throw new Error(`berth ${argv.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}

const why = whyNoPodman();
const enters = whyNoExecution();

describe.skipIf(why !== undefined)(`the checks of containers${why === undefined ? '' : ` (${why})`}`, () => {
  let started: PodmanFleet;
  let fleet: Fleet;

  beforeAll(async () => {
    // It listens as soon as a file is there, and no more without it.
    const script = `trap "exit 0" TERM; mkdir -p /www; echo hello >/www/index.html; touch "/\${OPEN:-none}"
while true; do
  while ! test -e /open; do sleep 0.1; done; httpd -p 80 -h /www
  while test -e /open; do sleep 0.1; done; kill $(pidof httpd)
done`;
    started = await startPodmanFleet([{ name: 'door', script, healthCheck: 'test -e /open' }]);
    ({ fleet } = started);
    await berth(
      fleet,
      'image',
      'add',
      'door',
      '--source',
      'docker://localhost/door:1',
      '--cpus',
      '1',
      '--memory',
      '64MiB',
    );
  });
  afterAll(() => started.stop());

  it('a port that answers makes a container ready', async () => {
    const said = await berth(
      fleet,
      ...['run', 'door', '--name', 'open', '--env', 'OPEN=open', '--wait', '--timeout', '60s'],
      ...['--publish', '80', '--health-tcp', '80', '--health-period', '1s'],
    );
    expect(said).toMatch(/^open is ready/);
  });

  it.each([
    ['a published port', ['--publish', '80']],
    ['a port that is not published', []],
  ])('%s that refuses keeps it from being ready, and says why', async (_, publish) => {
    const name = `shut-${publish.length}`;
    await berth(
      fleet,
      ...[
        'run',
        'door',
        '--name',
        name,
        ...publish,
        '--health-tcp',
        '80',
        '--health-period',
        '1s',
        '--health-failures',
        '2',
      ],
    );
    const shut = await fleet.until(name, (each) => readyCondition(each)?.message.includes('failed') === true);
    expect(shut.status).toMatchObject({ phase: 'Running', guest: { ready: false, failing: { name: 'readiness' } } });
    expect(readyCondition(shut)).toMatchObject({ status: 'False', reason: 'ReadinessCheck' });
    expect(await berth(fleet, 'ps')).toMatch(new RegExp(`${name} .*the readiness check failed: .*port 80`));
  });

  it.skipIf(enters !== undefined).each([
    ['a command', '--health-exec=test -e /open', 'the command ended with code 1'],
    ['the HEALTHCHECK of the image', '--health-image', 'its HEALTHCHECK says'],
  ])(`%s decides${enters ? ` (${enters})` : ''}`, async (_, flag, why) => {
    const name = flag.split('=')[0]?.slice(2) ?? '';
    await berth(fleet, 'run', 'door', '--name', name, flag, '--health-period', '1s', '--health-timeout', '10s');
    await fleet.until(name, (each) => readyCondition(each)?.message.includes(why) === true);
    await berth(fleet, 'exec', name, '--', '/bin/sh', '-c', 'echo >/open');
    await fleet.until(name, ({ status }) => status.guest?.ready === true);
  });

  it.skipIf(enters !== undefined)(
    `a port that closes takes a ready one off${enters ? ` (${enters})` : ''}`,
    async () => {
      await berth(
        fleet,
        ...['run', 'door', '--name', 'flap', '--env', 'OPEN=open', '--wait'],
        ...['--health-http', '80/index.html', '--health-period', '1s', '--health-failures', '1'],
      );
      await berth(fleet, 'exec', 'flap', '--', '/bin/sh', '-c', 'rm /open');
      await fleet.until('flap', ({ status }) => status.guest?.ready === false);
      await berth(fleet, 'exec', 'flap', '--', '/bin/sh', '-c', 'touch /open');
      await fleet.until('flap', ({ status }) => status.guest?.ready === true);
      const events = await berth(fleet, 'events', 'flap');
      expect(events).toMatch(/NotReady/);
    },
  );
});

describe('the checks of virtual machines', () => {
  const at = tinyFleet();

  it('are as the recipe in docs/health-checks.md says', async () => {
    const document = await readFile(join(import.meta.dirname, '../docs/health-checks.md'), 'utf8');
    const recipe = document.slice(document.indexOf('## Recipe'), document.indexOf('## What is attempted'));
    const commands = [...recipe.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
      block.split(/^\$ berth /m).slice(1),
    );
    expect(commands).toHaveLength(6);
    for (const command of commands) {
      const [words = '', ...said] = command.trimEnd().split('\n');
      if (words.startsWith('events'))
        await at.fleet.until('broken', ({ status }) => status.restarts?.exhausted === true);
      const pattern = said.map((line) => line.split('...').map(escaped).join('[^]*')).join('\\s+');
      expect(await berth(at.fleet, ...words.split(' '))).toMatch(new RegExp(`^${pattern}\\s*$`));
    }
  });

  it('a published port counts only once the guest itself answers there', async () => {
    await at.fleet.client.create('instance', {
      metadata: { name: 'page' },
      spec: {
        ...{ image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 1000 },
        userData: '#!/bin/sh\n( while ! test -e /tmp/open; do sleep 0.1; done; httpd -p 8080 -h /var/www ) &\n',
        ports: [{ guestPort: 8080, hostPort: 0, protocol: 'tcp' }],
        checks: { readiness: { tcp: { port: 8080 }, periodMs: 1000, failures: 2 } },
      },
    });
    const shut = await at.fleet.until('page', (each) => readyCondition(each)?.message.includes('failed') === true);
    expect(shut.status).toMatchObject({ phase: 'Running', guest: { ready: false } });
    // The guest has booted, and port 80 answers; port 8080 still does not.
    await at.fleet.client.replace('instance', 'page', {
      ...shut,
      spec: { ...shut.spec, checks: { readiness: { http: { port: 80 }, periodMs: 1000 } } },
    });
    await at.fleet.until('page', ({ status }) => status.guest?.ready === true);
    const open = await at.fleet.client.get('instance', 'page');
    await at.fleet.client.replace('instance', 'page', {
      ...open,
      spec: { ...open.spec, checks: { readiness: { tcp: { port: 8080 }, periodMs: 1000, failures: 2 } } },
    });
    await at.fleet.until('page', ({ status }) => status.guest?.ready === false);
  });
});
