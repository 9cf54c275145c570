// Spares through a real ansible-playbook: while the server is killed at each step, and as docs/provisioners.md says.

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Fleet, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;
/** Of the section "Try it", with the files of this test. */
let recipe: { readonly yaml: readonly string[]; readonly sh: readonly string[] };

const tasks = (name: string, script: string, more = '') => `
- hosts: all
  gather_facts: false
  tasks:
    - name: ${name}
      ansible.builtin.shell: '${script}'
${more}`;
const waiting = (event: string) =>
  `echo ${event} {{ berth_host }} {{ berth_variables.size }} >> {{ folder }}/done; until [ -e {{ folder }}/${event}.go ]; do sleep 0.1; done`;
const found = `
    - name: Say what was made
      ansible.builtin.set_stats: { data: { berth_address: 127.0.0.1, berth_name: node-9 } }
`;

async function readRecipe(): Promise<typeof recipe> {
  const document = await readFile(new URL('../docs/provisioners.md', import.meta.url), 'utf8');
  const section = /\n## Try it\n([\s\S]*?)\n## /.exec(document)?.[1] ?? '';
  const own = section.replaceAll('/tmp/', `${directory}/`).replaceAll('/etc/berth/playbooks', directory);
  const blocks = (language: string) =>
    [...own.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) => text);
  return { yaml: blocks('yaml'), sh: blocks('sh') };
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-spare-'));
  recipe = await readRecipe();
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  await file('hello.yml', recipe.yaml[0] ?? '');
  const ansible = { connection: 'local', variables: { folder: directory } };
  fleet = await startFleet(join(directory, 'fleet'), {
    drivers: ['fake'],
    server: {
      probeAllow: ['127.0.0.1/32'],
      provisioners: {
        ...(parse(recipe.yaml[1] ?? '') as { provisioners: object }).provisioners,
        metal: {
          ansible: {
            ...ansible,
            playbook: await file('prepare.yml', tasks('Prepare', waiting('prepare'), found)),
            releasePlaybook: await file('release.yml', tasks('Release', waiting('release'))),
          },
        },
        broken: {
          ansible: {
            ...ansible,
            playbook: await file('broken.yml', tasks('Log in', 'exit 3')),
            secretVariables: { password: await file('password', 'Planted/Password+4f\n') },
          },
        },
      },
    },
  });
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

const done = () => readFile(join(directory, 'done'), 'utf8').catch(() => '');
const go = (event: string) => writeFile(join(directory, `${event}.go`), '');

async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${fleet.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${fleet.environment['BERTH_TOKEN']}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  expect(response.status, JSON.stringify(answer)).toBeLessThan(300);
  return answer;
}

function prepare(provisioner: string, ready?: object): Promise<Record<string, unknown>> {
  const request = { requested_cpu: 1, requested_memory: 64, provisioner, variables: { size: 'big' } };
  return call('POST', '/spare/prepare', { ...request, ...(ready === undefined ? {} : { ready }) });
}

it('is made once, is ready, and is undone once, whenever the server is killed', async () => {
  const port = Number(new URL(fleet.url).port);
  const { spare_id: id } = await prepare('metal', { tcp: { port } });
  const show = () => call('GET', `/spare/${String(id)}`);
  await expect.poll(done).toBe('prepare h1 big\n');
  await fleet.restartServer();
  await expect.poll(show).toMatchObject({ status: 'provisioning' });
  await fleet.killServer();
  await go('prepare');
  await fleet.restartServer();
  await expect.poll(show).toMatchObject({ status: 'ready', host: 'h1', ip: '127.0.0.1' });
  await call('DELETE', `/spare/${String(id)}`);
  await expect.poll(done).toBe('prepare h1 big\nrelease h1 big\n');
  await fleet.restartServer();
  await go('release');
  await expect.poll(show).toMatchObject({ status: 'released' });
  expect(await done()).toBe('prepare h1 big\nrelease h1 big\n');
  expect(await readdir(join(fleet.serverDirectory, 'spares'))).toEqual([]);
  expect((await stat(join(fleet.serverDirectory, 'spares'))).mode & 0o777).toBe(0o700);
});

it('says why it could not be made, and no secret', async () => {
  const { spare_id: id } = await prepare('broken');
  const show = () => call('GET', `/spare/${String(id)}`);
  await expect.poll(show).toMatchObject({
    status: 'failed',
    message: expect.stringContaining(
      'the playbook ended with exit code 2: task "Log in" failed on h1: non-zero return code',
    ),
  });
  expect(JSON.stringify(await show()) + fleet.serverSaid()).not.toContain('Planted/');
});

it('goes as docs/provisioners.md says', async () => {
  const sh = async (text = '', more: Record<string, string> = {}): Promise<Record<string, unknown>> => {
    const env = { PATH: process.env['PATH'], ...fleet.environment, ...more };
    return JSON.parse((await promisify(execFile)('bash', ['-eu', '-c', text], { env })).stdout) as Record<
      string,
      unknown
    >;
  };
  const [ask, show, release, ...others] = recipe.sh;
  expect(others).toEqual([]);
  const { spare_id: SPARE } = (await sh(ask)) as { spare_id: string };
  await expect.poll(() => sh(show, { SPARE })).toMatchObject({ status: 'ready', host: 'h1' });
  const made = await readFile(join(directory, `berth-hello-${SPARE}`), 'utf8');
  expect(made).toBe('h1 has 1 CPUs for tests\n');
  await sh(release, { SPARE });
  await expect.poll(() => sh(show, { SPARE })).toMatchObject({ status: 'released' });
});
