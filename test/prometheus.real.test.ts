// Debian's Prometheus scrapes a real server: the metrics are well formed, every query of the board has data, and the alerts fire.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../src/base/test-ports.ts';
import { type Fleet, startFleet } from './processes.ts';

const run = promisify(execFile);
const packaging = fileURLToPath(new URL('../packaging/', import.meta.url));
const missing = existsSync('/usr/bin/prometheus') ? undefined : 'Prometheus is not installed (package prometheus)';

let directory: string;
let fleet: Fleet;
let prometheus: ReturnType<typeof spawn> | undefined;
let api: string;

interface Answer<T> {
  readonly data: T;
}

async function ask<T>(path: string): Promise<T> {
  const { data } = (await (await fetch(`${api}/api/v1/${path}`)).json()) as Answer<T>; // its documented form
  return data;
}

async function query(expr: string): Promise<number> {
  const { result } = await ask<{ result: unknown[] }>(`query?query=${encodeURIComponent(expr)}`);
  return result.length;
}

beforeAll(async () => {
  if (missing) return;
  directory = await mkdtemp(join(tmpdir(), 'berth-prometheus-'));
  fleet = await startFleet(directory, { drivers: ['fake'] });
  const { token } = await fleet.client.createToken({
    metadata: { name: 'prometheus', labels: {} },
    spec: { description: '', role: 'metrics' },
  });
  const port = await freePort();
  api = `http://127.0.0.1:${port}`;
  await writeFile(join(directory, 'token'), token);
  // As they are, but at once: how long each waits is for "promtool test rules".
  const rules = await readFile(join(packaging, 'prometheus/berth-alerts.yml'), 'utf8');
  await writeFile(join(directory, 'alerts.yml'), rules.replace(/^ +for: .*\n/gm, '').replace('> 900', '> 1'));
  await writeFile(
    join(directory, 'prometheus.yml'),
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [alerts.yml]
scrape_configs:
  - job_name: berth
    authorization: { credentials_file: token }
    static_configs: [{ targets: ['${new URL(fleet.url).host}'] }]
`,
  );
  prometheus = spawn(
    'prometheus',
    [
      ...['--config.file=prometheus.yml', `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'],
      `--storage.tsdb.path=${join(directory, 'data')}`,
    ],
    { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'https://images.example/tiny.qcow2' },
  });
  await fleet.client.create('instance', { metadata: { name: 'huge' }, spec: { image: 'tiny', cpus: 1_000 } });
});
afterAll(async () => {
  if (prometheus) {
    prometheus.kill();
    await once(prometheus, 'exit');
  }
  await fleet?.stop();
  if (directory) await rm(directory, { recursive: true, force: true });
});

describe.skipIf(missing !== undefined)(`Prometheus${missing ? ` (${missing})` : ''}`, () => {
  it('is up', async () => {
    await expect.poll(() => query('up == 1').catch(() => 0)).toBe(1);
  });

  it('finds no fault in the metrics', async () => {
    const token = await readFile(join(directory, 'token'), 'utf8');
    const text = await (await fetch(`${fleet.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
    const check = run('promtool', ['check', 'metrics']);
    check.child.stdin?.end(text);
    expect(await check).toMatchObject({ stdout: '', stderr: '' });
  });

  it('takes the alert rules, and they fire when they should', async () => {
    const cwd = join(packaging, 'prometheus');
    await run('promtool', ['check', 'rules', 'berth-alerts.yml'], { cwd });
    await run('promtool', ['test', 'rules', 'berth-alerts-test.yml'], { cwd });
  });

  it('has data for every query of the board', async () => {
    const board = JSON.parse(await readFile(join(packaging, 'grafana/berth.json'), 'utf8')) as {
      readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
    };
    const queries = board.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(20);
    let count = 0;
    const { revision } = await fleet.client.list('host');
    const watched = new AbortController();
    const watch = async (): Promise<void> => {
      for await (const _ of fleet.client.watch('host', { revision }, watched.signal));
    };
    const watching = watch().catch(() => undefined);
    await expect
      .poll(
        async () => {
          await fleet.client.create('instance', {
            metadata: { name: `a-${count++}` },
            spec: { image: 'tiny', cpus: 1, memoryMiB: 64 },
          });
          const found = await Promise.all(queries.map((expr) => query(expr.replaceAll('$__rate_interval', '20s'))));
          return queries.filter((_, i) => found[i] === 0);
        },
        { interval: 1_000 },
      )
      .toEqual([]);
    watched.abort();
    await watching;
  });

  it('fires the alerts of what is wrong', async () => {
    const firing = async (): Promise<readonly string[]> => {
      const { alerts } = await ask<{ alerts: { labels: { alertname: string }; state: string }[] }>('alerts');
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
    };
    await expect.poll(firing).toContain('BerthQueueStuck');
    expect(await firing()).not.toContain('BerthServerDown');
    expect(await firing()).not.toContain('BerthNoLeader');
    await fleet.killServer();
    await expect.poll(firing).toContain('BerthServerDown');
    await fleet.restartServer();
  });
});
