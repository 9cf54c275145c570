import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { systemClock } from '../../../base/system.ts';
import { ServerConfig } from '../../config.ts';
import { parseStrictYaml } from '../../strict-yaml.ts';
import { readSpareMeans } from './index.ts';

const options = { clock: systemClock, alone: true };
const read = (value: object) => readSpareMeans(parse(ServerConfig, value), options);

it('has a probe without any configuration', async () => {
  const { provisioners, probe } = await read({});
  expect(provisioners.size).toBe(0);
  const spare = { id: 'spare_1', name: 'a', createdAtMs: 0 };
  const { signal } = new AbortController();
  const answer = await probe({ tcp: { port: 22 }, timeoutMs: 1_000, periodMs: 100 }, spare, {
    timeoutMs: 1_000,
    signal,
  });
  expect(answer).toMatchObject({ ready: false, failed: true });
});

it('makes a provisioner of each kind', async () => {
  const { provisioners } = await read({
    provisioners: {
      maker: { http: { url: 'https://maker.test/' } },
      metal: { ansible: { playbook: import.meta.filename } },
    },
  });
  expect([...provisioners.keys()]).toEqual(['maker', 'metal']);
});

it.each([
  ['probeAllow[0]', { probeAllow: ['10.0.0.0'] }],
  ['provisioners.a.ansible.playbook', { provisioners: { a: { ansible: { playbook: '/missing.yml' } } } }],
  ['kubernetes.lab.tokenFile', { kubernetes: { lab: { url: 'https://lab.test', tokenFile: '/missing' } } }],
])('names %s', async (field, config) => {
  await expect(async () => read(config)).rejects.toMatchObject({ code: 'InvalidRequest', field });
});

it('takes every example of the documentation', async () => {
  const document = await readFile(join(import.meta.dirname, '../../../../docs/provisioners.md'), 'utf8');
  const blocks = [...document.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  const configs = blocks.filter((text) => /^(provisioners|probeAllow):/.test(text));
  const keys = configs.flatMap((text) => {
    const { provisioners, kubernetes } = parse(ServerConfig, parseStrictYaml(text, 'docs/provisioners.md').value);
    return [...Object.keys(provisioners), ...Object.keys(kubernetes)];
  });
  expect(keys).toEqual(['hello', 'metal', 'pipelines', 'maker', 'lab']);
});
