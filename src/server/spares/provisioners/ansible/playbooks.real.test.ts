// Real ansible-playbook on this machine.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { system, systemClock } from '../../../../base/system.ts';
import type { AnsibleConfig } from '../provisioner-config.ts';
import { withVariable } from './process-table.ts';
import { type PlaybookOrder, Playbooks, type PlaybookState } from './playbooks.ts';
import { runVariable } from './run-folder.ts';

let folder: string;
const never = new AbortController().signal;

/** A task for each line of shell; `{{ folder }}` is the test's folder. */
const playbooks: Readonly<Record<string, string>> = {
  'good.yml': `
- name: Prepare
  hosts: all
  gather_facts: false
  tasks:
    - name: Write what it was given
      ansible.builtin.copy:
        dest: "{{ folder }}/given"
        content: "{{ berth_spare }} {{ berth_host }} {{ password }} {{ tricky }}"
    - name: Say what it made
      ansible.builtin.set_stats:
        data: { berth_address: 10.0.0.9, berth_name: made }
`,
  'bad.yml': `
- hosts: all
  gather_facts: false
  tasks:
    - name: Log in
      ansible.builtin.fail:
        msg: "cannot log in with {{ password }}"
`,
  'hidden.yml': `
- hosts: all
  gather_facts: false
  tasks:
    - name: Hide
      ansible.builtin.fail: { msg: nothing to see }
      no_log: true
`,
  'unreachable.yml': `
- hosts: all
  gather_facts: false
  tasks: [{ ansible.builtin.ping: {} }]
`,
  'broken.yml': '- hosts: [\n',
  'others.yml': '- hosts: others\n  tasks: []\n',
  'slow.yml': `
- hosts: all
  gather_facts: false
  tasks:
    - name: Wait for the test
      ansible.builtin.shell: 'touch {{ folder }}/{{ berth_spare }}.up; until [ -e {{ folder }}/{{ berth_spare }}.go ]; do sleep 0.1; done'
`,
  'stubborn.yml': `
- hosts: all
  gather_facts: false
  tasks:
    - name: Ignore SIGTERM
      ansible.builtin.shell: 'trap "" TERM; setsid sh -c "trap : TERM; touch {{ folder }}/{{ berth_spare }}.up; while :; do sleep 0.1; done"'
`,
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-playbooks-'));
  for (const [name, text] of Object.entries(playbooks)) await writeFile(join(folder, name), text);
  await writeFile(join(folder, 'password'), 'hunter{{ 1 }}2\n');
});
afterAll(async () => {
  for (const name of await readdir(join(folder, 'runs')))
    for (const { pid } of await withVariable(`${runVariable}=${join(folder, 'runs', name)}`))
      system.signal(pid, 'SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

const configOf = (playbook: string, changes: Partial<AnsibleConfig> = {}): AnsibleConfig => ({
  playbook: join(folder, playbook),
  connection: 'local',
  variables: { folder },
  secretVariables: { password: join(folder, 'password') },
  timeoutMs: 100_000,
  stopMs: 300,
  ...changes,
});

const orderOf = (spareId: string, { playbook }: AnsibleConfig): PlaybookOrder => ({
  spareId,
  action: 'provision',
  playbook,
  target: { host: 'rack1' },
  variables: { berth_spare: spareId, berth_host: 'rack1', tricky: "{{ lookup('pipe', 'id') }}" },
});

function playbooksOf(config: AnsibleConfig, program = 'ansible-playbook'): Playbooks {
  return new Playbooks(config, { field: 'ansible', directory: join(folder, 'runs'), clock: systemClock, program });
}

async function run(spareId: string, config: AnsibleConfig, program?: string): Promise<PlaybookState> {
  const all = playbooksOf(config, program);
  await all.start(orderOf(spareId, config));
  return all.end(spareId, 'provision', never);
}

const isThere = (name: string) =>
  stat(join(folder, name)).then(
    () => true,
    () => false,
  );
const isUp = (spareId: string) => expect.poll(() => isThere(`${spareId}.up`)).toBe(true);

function processesOf(spareId: string) {
  return withVariable(`${runVariable}=${join(folder, 'runs', `${spareId}.provision`)}`);
}

describe('a playbook', () => {
  it('that succeeds says what it made, and keeps no secret', async () => {
    const config = configOf('good.yml');
    expect(await run('good', config)).toEqual({
      is: 'ended',
      ok: true,
      found: { berth_address: '10.0.0.9', berth_name: 'made' },
    });
    expect(await readFile(join(folder, 'given'), 'utf8')).toBe("good rack1 hunter{{ 1 }}2 {{ lookup('pipe', 'id') }}");
    const kept = await readdir(join(folder, 'runs/good.provision'));
    expect(kept).not.toEqual(expect.arrayContaining(['variables.yml', 'home', 'tmp']));
    await playbooksOf(config).forget('good');
    expect(await playbooksOf(config).state('good', 'provision')).toEqual({ is: 'absent' });
  });

  it.each([
    ['that fails in a task', 'bad.yml', 'exit code 2: task "Log in" failed on rack1: cannot log in with ***'],
    ['that hides its tasks', 'hidden.yml', 'exit code 2: a task failed on rack1'],
    ['that cannot be read', 'broken.yml', 'Syntax Error while loading YAML'],
    ['that is for other hosts', 'others.yml', 'ran on no host'],
  ])('%s has failed', async (_, playbook, message) => {
    const state = await run(playbook.replace('.yml', ''), configOf(playbook));
    expect(state).toEqual({ is: 'ended', ok: false, message: expect.stringContaining(message) });
    expect(JSON.stringify(state)).not.toMatch(/hunter|nothing to see/);
  });

  it('whose host is unreachable has failed', async () => {
    // Nothing listens on port 1.
    const config = configOf('unreachable.yml', {
      connection: 'ssh',
      variables: { ansible_host: '127.0.0.1', ansible_port: 1 },
    });
    expect(await run('unreachable', config)).toMatchObject({
      ok: false,
      message: expect.stringContaining('exit code 4: rack1 is unreachable'),
    });
  });

  it('without Ansible says what to install', async () => {
    expect(await run('missing', configOf('good.yml'), 'no-ansible-playbook')).toMatchObject({
      ok: false,
      message: expect.stringContaining('install the package ansible-core'),
    });
  });

  it('that hangs is ended when its time is over', async () => {
    const config = configOf('slow.yml');
    await playbooksOf(config).start(orderOf('hangs', config));
    await isUp('hangs');
    const state = await playbooksOf({ ...config, timeoutMs: 1 }).end('hangs', 'provision', never);
    expect(state).toMatchObject({ ok: false, message: expect.stringContaining('was ended (during task 1: Wait for') });
    expect(await processesOf('hangs')).toEqual([]);
  });

  it('that ignores SIGTERM, and leaves its group, is killed', async () => {
    const config = configOf('stubborn.yml');
    const all = playbooksOf(config);
    await all.start(orderOf('stubborn', config));
    await isUp('stubborn');
    expect(new Set((await processesOf('stubborn')).map(({ group }) => group)).size).toBeGreaterThan(1);
    await all.stop('stubborn', 'provision', 'the spare was released');
    expect(await processesOf('stubborn')).toEqual([]);
    expect(await all.state('stubborn', 'provision')).toMatchObject({
      is: 'ended',
      ok: false,
      message: expect.stringContaining('the spare was released'),
    });
  });

  it('that a signal from outside killed is lost', async () => {
    const config = configOf('slow.yml');
    const all = playbooksOf(config);
    await all.start(orderOf('killed', config));
    await isUp('killed');
    for (const { pid } of await processesOf('killed')) system.signal(pid, 'SIGKILL');
    expect(await all.end('killed', 'provision', never)).toMatchObject({
      ok: false,
      message: expect.stringContaining('how it ended is not known (during task 1: Wait for the test)'),
    });
  });
});

describe('after the server was killed', () => {
  /** As a server that is killed with SIGKILL after it has started the playbook. */
  async function startAndDie(spareId: string, config: AnsibleConfig): Promise<void> {
    const start = { config, directory: join(folder, 'runs'), order: orderOf(spareId, config) };
    const program = join(import.meta.dirname, 'test-start-playbook.ts');
    const server = spawn(system.nodePath(), [program, JSON.stringify(start)], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(server.stdout, 'data');
    server.kill('SIGKILL');
    await once(server, 'exit');
  }

  it('the playbook is found again while it runs, and ends well', async () => {
    const config = configOf('slow.yml');
    await startAndDie('again', config);
    const all = playbooksOf(config);
    expect(await all.state('again', 'provision')).toMatchObject({ is: 'running' });
    await isUp('again');
    expect(await all.state('again', 'provision')).toEqual({ is: 'running', note: 'task 1: Wait for the test' });
    await writeFile(join(folder, 'again.go'), '');
    expect(await all.end('again', 'provision', never)).toEqual({ is: 'ended', ok: true, found: {} });
  });

  it('its end is known although it ended meanwhile', async () => {
    const config = configOf('good.yml');
    await startAndDie('meanwhile', config);
    await expect.poll(() => isThere('runs/meanwhile.provision/exit')).toBe(true);
    expect(await playbooksOf(config).state('meanwhile', 'provision')).toMatchObject({ is: 'ended', ok: true });
  });

  it('it is ended on request', async () => {
    const config = configOf('slow.yml');
    await startAndDie('ended', config);
    await isUp('ended');
    await playbooksOf(config).stop('ended', 'provision', 'the spare was released');
    expect(await processesOf('ended')).toEqual([]);
  });
});
