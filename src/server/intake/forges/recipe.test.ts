// Follows docs/forges.md: its configuration starts a server, and a signed push becomes a job with a commit status.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import type { Logger } from '../../../base/log.ts';
import { systemFetch } from '../../../base/system.ts';
import { keys } from '../../../core/state/keys.ts';
import { ServerConfig } from '../../config.ts';
import { parseStrictYaml } from '../../strict-yaml.ts';
import { startServer } from '../../run.ts';
import { startTestServer } from '../../testing.ts';
import { readForges } from './forges.ts';
import { headersOf, pushBody, send, TestForge, testSecret, testSha, testToken } from './testing.ts';

let folder: string;
let document: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-recipe-'));
  document = await readFile(join(import.meta.dirname, '../../../../docs/forges.md'), 'utf8');
  for (const forge of ['github', 'forgejo']) {
    await writeFile(join(folder, `${forge}.secret`), `${testSecret}\n`);
    await writeFile(join(folder, `${forge}.token`), `${testToken}\n`);
  }
});
afterAll(() => rm(folder, { recursive: true }));

/** The configuration for a forge, with the files of this test. */
function configOf(forge: TestForge): ServerConfig {
  const blocks = [...document.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  const text = blocks.find((block) => block.includes(`forge: ${forge.forge}\n`)) ?? '';
  const config = parse(ServerConfig, parseStrictYaml(text.replaceAll('/etc/berth', folder), 'docs/forges.md').value);
  return { ...config, forges: config.forges.map((hook) => ({ ...hook, apiUrl: forge.apiUrl })) };
}

describe('the recipe in docs/forges.md', () => {
  it.each(['github', 'forgejo'] as const)('for %s works', async (name) => {
    const forge = await new TestForge(name).start();
    const config = configOf(forge);
    const forges = await readForges(config, { environment: {}, fetch: systemFetch });
    const server = await startTestServer(forges === undefined ? {} : { forges });
    try {
      for (const image of ['default', 'debian-12'])
        await server.client.create('image', {
          metadata: { name: image },
          spec: { source: 'https://images.test/x.qcow2', checksum: `sha256:${'0'.repeat(64)}` },
        });
      const path = new RegExp(`https://berth.example(/v1/hooks/${name})`).exec(document)?.[1] ?? '';
      const body = pushBody(forge);
      const headers = headersOf({ forge: name, event: 'push', id: 'delivery-1', body });
      const { status, json } = await send(server.url + path, { body, headers });
      expect(status).toBe(202);
      const { jobs } = json as { jobs: string[] };
      const project = config.forges[0]?.project ?? '';
      const job = () => server.plane.decider.cache.committed('job', keys.job(project, jobs[0] ?? ''))?.value;
      await expect.poll(() => job()?.status.commitStatus).toEqual({ state: 'queued', final: false });
      expect(forge.statuses).toContainEqual({
        repository: 'owner/web',
        sha: testSha(1),
        state: 'pending',
        description: 'waiting for a virtual machine',
        context: name === 'github' ? 'berth/push/debian-12' : 'berth/push/default',
        target_url: `https://berth.example/v1/jobs/${jobs[0]}/log?project=${project}`,
      });
    } finally {
      await server.close();
      await forge.stop();
    }
  });
});

describe('a whole server', () => {
  /** Also what it logs. */
  async function startFrom(config: ServerConfig) {
    const lines: string[] = [];
    const note = (message: string, fields?: unknown): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const log: Logger = { debug: note, info: note, warn: note, error: note, with: () => log };
    const server = await startServer(
      { ...config, listen: '127.0.0.1:0', store: 'memory:', dataDirectory: join(folder, 'data') },
      { log },
    );
    return { server, lines };
  }

  it('takes webhooks, warns of open files, and logs no secret', async () => {
    const forge = await new TestForge('github').start();
    const { server, lines } = await startFrom(configOf(forge));
    try {
      const body = '{"zen":"Keep it logically awesome."}';
      const headers = headersOf({ forge: 'github', event: 'ping', id: 'delivery-1', body });
      expect(await send(`${server.url}/v1/hooks/github`, { body, headers })).toMatchObject({ status: 200 });
      expect(lines).toContainEqual(expect.stringContaining(`may read ${join(folder, 'github.secret')}`));
      expect(lines.filter((line) => line.includes(testSecret) || line.includes(testToken))).toEqual([]);
    } finally {
      await server.close();
      await forge.stop();
    }
  });

  it('with an empty secret does not start', async () => {
    await writeFile(join(folder, 'empty.secret'), '');
    const config = parse(ServerConfig, {
      forges: [
        {
          name: 'main',
          forge: 'github',
          secretFile: join(folder, 'empty.secret'),
          rules: [{ repository: 'owner/*', branches: ['main'], events: ['push'] }],
        },
      ],
    });
    await expect(startFrom(config)).rejects.toMatchObject({ code: 'InvalidRequest', field: 'forges[0].secretFile' });
  });
});
