// Real ansible-playbook on this machine.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { system, systemClock } from '../../../../base/system.ts';
import type { ProvisionOutcome, SpareWork } from '../../provisioner.ts';
import type { AnsibleConfig } from '../provisioner-config.ts';
import { withVariable } from './process-table.ts';
import { AnsibleProvisioner } from './ansible-provisioner.ts';
import { runVariable } from './run-folder.ts';

let folder: string;

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
        content: "{{ berth_spare }} {{ berth_host }} {{ berth_cpus }} {{ password }} {{ berth_variables.tricky }}"
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

const releasePlaybook = `
- hosts: all
  gather_facts: false
  tasks:
    - name: Undo
      ansible.builtin.shell: 'echo {{ berth_action }} >> {{ folder }}/{{ berth_spare }}.undone; [ ! -e {{ folder }}/{{ berth_spare }}.stuck ]'
`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-playbooks-'));
  for (const [name, text] of Object.entries(playbooks)) await writeFile(join(folder, name), text);
  await writeFile(join(folder, 'release.yml'), releasePlaybook);
  await writeFile(join(folder, 'inventory'), '[lab]\nrack2 ansible_connection=local\n');
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
  concurrency: 10,
  stopMs: 300,
  ...changes,
});

const workOf = (id: string, changes: Partial<SpareWork> = {}): SpareWork => ({
  id,
  attempt: 1,
  name: id,
  project: 'default',
  createdAtMs: 0,
  host: { name: 'rack1' },
  cpus: 4,
  memoryMiB: 1024,
  diskGiB: 0,
  variables: { tricky: "{{ lookup('pipe', 'id') }}", ansible_connection: 'ssh' },
  ...changes,
});

function provisionerOf(config: AnsibleConfig, alone = true): AnsibleProvisioner {
  return new AnsibleProvisioner(config, {
    field: 'ansible',
    directory: join(folder, 'runs'),
    clock: systemClock,
    alone,
  });
}

const runOf = (changes: { signal?: AbortSignal; resumed?: boolean; notes?: string[] } = {}) => ({
  signal: changes.signal ?? new AbortController().signal,
  resumed: changes.resumed ?? false,
  progress: (note: string) => void changes.notes?.push(note),
});
const resumed = runOf({ resumed: true });

const provision = (id: string, config: AnsibleConfig): Promise<ProvisionOutcome> =>
  provisionerOf(config).provision(workOf(id), runOf());

const isThere = (name: string) =>
  stat(join(folder, name)).then(
    () => true,
    () => false,
  );
async function appears(name: string): Promise<void> {
  await expect.poll(() => isThere(name)).toBe(true);
}

/** Begins, and leaves when the playbook is at work. */
async function begin(id: string, config: AnsibleConfig): Promise<void> {
  const leave = new AbortController();
  const left = expect(provisionerOf(config).provision(workOf(id), runOf({ signal: leave.signal }))).rejects.toThrow(
    'the playbook goes on',
  );
  await appears(`${id}.up`);
  leave.abort();
  await left;
}

function processesOf(id: string) {
  return withVariable(`${runVariable}=${join(folder, 'runs', `${id}.provision`)}`);
}

describe('a playbook', () => {
  it('that succeeds says what it made, and keeps no secret', async () => {
    const config = configOf('good.yml');
    const notes: string[] = [];
    expect(await provisionerOf(config).provision(workOf('good'), runOf({ notes }))).toEqual({
      is: 'done',
      address: '10.0.0.9',
      name: 'made',
    });
    expect(await readFile(join(folder, 'given'), 'utf8')).toBe(
      "good rack1 4 hunter{{ 1 }}2 {{ lookup('pipe', 'id') }}",
    );
    const kept = await readdir(join(folder, 'runs/good.provision'));
    expect(kept).not.toEqual(expect.arrayContaining(['variables.yml', 'home', 'tmp']));
    expect(await provisionerOf(config).release(workOf('good'), runOf())).toEqual({ is: 'done' });
    expect(await isThere('runs/good.provision')).toBe(false);
  });

  it.each([
    ['that fails in a task', 'bad.yml', 'exit code 2: task "Log in" failed on rack1: cannot log in with ***'],
    ['that hides its tasks', 'hidden.yml', 'exit code 2: a task failed on rack1'],
    ['that cannot be read', 'broken.yml', 'Syntax Error while loading YAML'],
    ['that is for other hosts', 'others.yml', 'ran on no host'],
  ])('%s has failed', async (_, playbook, why) => {
    const outcome = await provision(playbook.replace('.yml', ''), configOf(playbook));
    expect(outcome).toEqual({ is: 'failed', why: expect.stringContaining(why) });
    expect(JSON.stringify(outcome)).not.toMatch(/hunter|nothing to see/);
  });

  it('whose host is unreachable has failed', async () => {
    // Nothing listens on port 1.
    const config = configOf('unreachable.yml', {
      connection: 'ssh',
      variables: { ansible_host: '127.0.0.1', ansible_port: 1 },
    });
    expect(await provision('unreachable', config)).toMatchObject({
      is: 'failed',
      why: expect.stringContaining('exit code 4: rack1 is unreachable'),
    });
  });

  it('with an inventory of its own is limited to the host', async () => {
    const config = configOf('good.yml', { inventory: join(folder, 'inventory') });
    expect(await provision('absent', config)).toMatchObject({
      is: 'failed',
      why: expect.stringContaining('no hosts to target'),
    });
    const work = workOf('present', { host: { name: 'rack2' } });
    expect(await provisionerOf(config).provision(work, runOf())).toMatchObject({ is: 'done' });
  });

  it.each(['@/etc/passwd', 'a:b', '-i', '*'])('is not run on a host with the name %s', async (name) => {
    const outcome = await provisionerOf(configOf('good.yml')).provision(workOf('named', { host: { name } }), runOf());
    expect(outcome).toMatchObject({ is: 'failed', refused: true });
    expect(await isThere('runs/named.provision')).toBe(false);
  });

  it('without its secrets has not started, and tells no path', async () => {
    const config = configOf('good.yml', { secretVariables: { password: join(folder, 'missing') } });
    const why = 'the playbook was not started: ansible.secretVariables.password of the server cannot be used';
    expect(await provision('secretless', config)).toEqual({ is: 'failed', why });
  });

  it('that hangs is ended when its time is over', async () => {
    const config = configOf('slow.yml');
    await begin('hangs', config);
    const outcome = await provisionerOf({ ...config, timeoutMs: 1 }).provision(workOf('hangs'), resumed);
    expect(outcome).toMatchObject({ is: 'failed', why: expect.stringContaining('was ended (during task 1: Wait for') });
    expect(await processesOf('hangs')).toEqual([]);
  });

  it('that ignores SIGTERM, and leaves its group, is killed', async () => {
    const config = configOf('stubborn.yml');
    await begin('stubborn', config);
    expect(new Set((await processesOf('stubborn')).map(({ group }) => group)).size).toBeGreaterThan(2);
    expect(await provisionerOf(config).release(workOf('stubborn'), runOf())).toEqual({ is: 'done' });
    expect(await processesOf('stubborn')).toEqual([]);
  });

  it('that was killed from outside has failed', async () => {
    const config = configOf('slow.yml');
    await begin('killed', config);
    for (const { pid } of await processesOf('killed')) system.signal(pid, 'SIGKILL');
    expect(await provisionerOf(config).provision(workOf('killed'), resumed)).toMatchObject({
      is: 'failed',
      why: expect.stringContaining('how it ended is not known (during task 1: Wait for the test)'),
    });
  });

  it('waits for its turn', async () => {
    const provisioner = provisionerOf(configOf('slow.yml', { concurrency: 1 }));
    const first = provisioner.provision(workOf('turn-1'), runOf());
    await appears('turn-1.up');
    const notes: string[] = [];
    const second = provisioner.provision(workOf('turn-2'), runOf({ notes }));
    await expect.poll(() => notes).toEqual(['it waits until other playbooks have ended']);
    expect(await processesOf('turn-2')).toEqual([]);
    await writeFile(join(folder, 'turn-2.go'), '');
    await writeFile(join(folder, 'turn-1.go'), '');
    expect(await Promise.all([first, second])).toEqual([{ is: 'done' }, { is: 'done' }]);
  });

  it('of an earlier attempt is ended before the next begins', async () => {
    await begin('twice', configOf('slow.yml'));
    const next = provisionerOf(configOf('good.yml')).provision(workOf('twice', { attempt: 2 }), runOf());
    expect(await next).toMatchObject({ is: 'done' });
  });
});

describe('a playbook that undoes a spare', () => {
  const undone = (id: string) => readFile(join(folder, `${id}.undone`), 'utf8');

  it('runs again until it has succeeded', async () => {
    const config = configOf('good.yml', { releasePlaybook: join(folder, 'release.yml') });
    await provision('undo', config);
    await writeFile(join(folder, 'undo.stuck'), '');
    expect(await provisionerOf(config).release(workOf('undo'), runOf())).toMatchObject({
      is: 'failed',
      why: expect.stringContaining('task "Undo" failed'),
    });
    await rm(join(folder, 'undo.stuck'));
    expect(await provisionerOf(config).release(workOf('undo', { attempt: 2 }), runOf())).toEqual({ is: 'done' });
    expect(await undone('undo')).toBe('release\nrelease\n');
    expect(await provisionerOf(config).release(workOf('undo', { attempt: 2 }), resumed)).toEqual({ is: 'done' });
    expect(await undone('undo')).toBe('release\nrelease\n');
  });

  it('is not run where nothing was made', async () => {
    const config = configOf('good.yml', { releasePlaybook: join(folder, 'release.yml') });
    expect(await provisionerOf(config).release(workOf('nothing'), runOf())).toEqual({ is: 'done' });
    expect(await isThere('nothing.undone')).toBe(false);
  });
});

describe('after the server was killed', () => {
  /** As a server that is killed with SIGKILL after it has started the playbook: `sign` is a file that appears then. */
  async function beginAndDie(id: string, config: AnsibleConfig, sign: string): Promise<void> {
    const start = JSON.stringify({ config, directory: join(folder, 'runs'), work: workOf(id) });
    const program = join(import.meta.dirname, 'test-provision.ts');
    const server = spawn(system.nodePath(), [program, start], { stdio: ['ignore', 'ignore', 'inherit'] });
    await appears(sign);
    server.kill('SIGKILL');
    await once(server, 'exit');
  }

  it('the playbook is found again while it runs, and ends well', async () => {
    const config = configOf('slow.yml');
    await beginAndDie('again', config, 'again.up');
    const before = await processesOf('again');
    const notes: string[] = [];
    const outcome = provisionerOf(config).provision(workOf('again'), runOf({ resumed: true, notes }));
    await expect.poll(() => notes).toEqual(['task 1: Wait for the test']);
    expect((await processesOf('again')).map(({ pid }) => pid)).toEqual(
      expect.arrayContaining(before.slice(0, 1).map(({ pid }) => pid)),
    );
    await writeFile(join(folder, 'again.go'), '');
    expect(await outcome).toEqual({ is: 'done' });
  });

  it('its end is known although it ended meanwhile', async () => {
    const config = configOf('good.yml');
    await beginAndDie('meanwhile', config, 'runs/meanwhile.provision/process');
    await appears('runs/meanwhile.provision/exit');
    expect(await isThere('runs/meanwhile.provision/variables.yml')).toBe(false);
    await rm(join(folder, 'given'), { force: true });
    expect(await provisionerOf(config).provision(workOf('meanwhile'), resumed)).toMatchObject({ is: 'done' });
    expect(await isThere('given')).toBe(false); // it did not run again
  });

  it('a playbook that was never started is started', async () => {
    expect(await provisionerOf(configOf('good.yml')).provision(workOf('never'), resumed)).toMatchObject({ is: 'done' });
  });

  it('a person decides where another server may have started it', async () => {
    const config = configOf('good.yml');
    expect(await provisionerOf(config, false).provision(workOf('elsewhere'), resumed)).toMatchObject({
      is: 'unknown',
      why: expect.stringContaining('another server'),
    });
    expect(await provisionerOf(config, false).provision(workOf('elsewhere'), runOf())).toMatchObject({ is: 'done' });
  });
});
