// Follows docs/three-machines.md: its commands run in three machines of namespaces, with a real PostgreSQL. Stand-ins are apt-get, npm, scp
// and systemctl; guests are pretended.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresPrograms } from '../../src/store/postgres/test-postgres.ts';
import { type Machines, startMachines } from './machines.ts';

const names = ['db', 'cp1', 'cp2'];

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may make machines of namespaces';
  if (postgresPrograms === null) return 'PostgreSQL is not installed';
  // In a chroot mounts cannot be kept apart, for its root is no mount point.
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? undefined : 'there are no mount namespaces here';
}

/** The commands of one code block for one machine. */
interface Step {
  readonly machine: string;
  readonly commands: readonly string[];
}

function stepsIn(document: string): Step[] {
  return [...document.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) => {
    const lines = [...block.matchAll(/^(all|db|cp1|cp2)# (.+)$/gm)];
    const machines = new Set(lines.flatMap(([, prompt = '']) => (prompt === 'all' ? names : [prompt])));
    return [...machines].map((machine) => ({
      machine,
      commands: lines.filter(([, prompt]) => prompt === 'all' || prompt === machine).map(([, , text = '']) => text),
    }));
  });
}

const reason = whyNot();
describe.skipIf(reason !== undefined)(`three machines${reason ? ` (${reason})` : ''}`, () => {
  let machines: Machines;
  beforeAll(async () => {
    machines = await startMachines(names);
  });
  afterAll(() => machines?.close());

  it('become a fleet as docs/three-machines.md says, and serve on while a server is down', async () => {
    const steps = stepsIn(readFileSync(join(import.meta.dirname, '../../docs/three-machines.md'), 'utf8'));
    expect(steps.length).toBeGreaterThan(10);
    /** What each command printed that began with these words. */
    const printed = new Map<string, string[]>();
    const follow = async ({ machine, commands }: Step): Promise<void> => {
      const script = commands.map((text) => `${text}\nprintf '\\036'`).join('\n');
      const outputs = (await machines.run(machine, script)).split('\x1e');
      for (const [i, text] of commands.entries()) {
        const words = text.split(' ', 3).join(' ');
        printed.set(words, [...(printed.get(words) ?? []), outputs[i] ?? '']);
      }
    };
    const down = steps.findIndex(({ commands }) => commands[0] === 'systemctl stop berth-server');
    for (const step of steps.slice(0, down)) await follow(step);
    await expectSecured(machines);
    for (const step of steps.slice(down)) await follow(step);

    expect(printed.get('berth whoami')?.[0]).toContain('admin');
    const hosts = printed.get('berth host ls')?.[0];
    for (const name of names) expect(hosts).toMatch(new RegExp(`^${name} `, 'm'));
    const [first, second] = printed.get('berth ps') ?? [];
    expect(first).toMatch(/^hello +Running/m);
    expect(second).toMatch(/^hello +Running/m);
    expect(second).toMatch(/^again +Running/m);
  }, 240_000);
});

async function expectSecured(machines: Machines): Promise<void> {
  const sessions = `SELECT count(*), bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'berth'`;
  const inPostgres = await machines.run('db', `cd / && runuser -u postgres -- psql -tA -c "${sessions}"`);
  expect(inPostgres.trim()).toMatch(/^[1-9]\d*\|t$/);
  const wrong = `berth context set wrong --url https://cp2:7070 --ca-fingerprint ${'0'.repeat(64)} 2>&1 || true`;
  expect(await machines.run('db', wrong)).toContain('cannot verify https://cp2:7070');
  expect(await machines.run('db', 'curl -s http://cp1:7070/v1/version || echo refused')).toContain('refused');
  for (const machine of ['cp1', 'cp2'])
    expect(await machines.run(machine, `ps -o user= -p "$(cat /run/berth-server.pid)"`)).toBe('berth\n');
}
