// The control plane speaks HTTPS: its agent, its command line and the lines between them go through it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificate } from './certificate.ts';
import { runBerth, startBerth, startFleet } from './processes.ts';

describe('a server with a certificate', () => {
  let directory: string;
  let tls: { certificate: string; key: string };
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-tls-'));
    tls = makeCertificate(directory);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('serves agents and people, and carries what guests say', { timeout: 240_000 }, async () => {
    const fleet = await startFleet(join(directory, 'fleet'), { drivers: ['fake'], tls });
    try {
      const spec = { source: 'file:///tiny.qcow2', defaults: { cpus: 1, memoryMiB: 128 } };
      await fleet.client.create('image', { metadata: { name: 'tiny' }, spec });
      expect(await runBerth(['run', 'tiny', '--name', 'web', '--wait'], fleet.environment)).toMatchObject({ code: 0 });
      expect((await runBerth(['logs', 'web'], fleet.environment)).stdout).toContain('berth: ready');
      const untrusting = await runBerth(['ps'], { ...fleet.environment, NODE_EXTRA_CA_CERTS: '' });
      expect(untrusting).toMatchObject({ code: 6, stderr: expect.stringContaining('certificate') });
      // An authority of one's own is named to the command line by variable or context, and to the agent.
      const alone = { ...fleet.environment, NODE_EXTRA_CA_CERTS: '' };
      expect(await runBerth(['ps'], { ...alone, BERTH_CA: tls.certificate })).toMatchObject({ code: 0 });
      const ofContext = { ...alone, BERTH_URL: '', BERTH_CONFIG: join(directory, 'contexts.yaml') };
      const set = ['context', 'set', 'prod', '--url', fleet.url, '--ca', tls.certificate];
      expect(await runBerth(set, ofContext)).toMatchObject({ code: 0 });
      expect((await runBerth(['logs', 'web'], ofContext)).stdout).toContain('berth: ready');
      await fleet.killAgent();
      const words = ['agent', '--config', join(directory, 'fleet', 'agent.yaml'), '--ca', tls.certificate];
      const agent = await startBerth(words, /registered/, { NODE_EXTRA_CA_CERTS: '' });
      await agent.stop();
      await fleet.restartAgent();
      await fleet.client.delete('instance', 'web');
      await fleet.gone('web');
    } finally {
      await fleet.stop();
    }
  });

  it('does not start with half of it, with a file that is not there, or with the key of another', async () => {
    const start = (...words: string[]) =>
      runBerth(['server', '--listen', '127.0.0.1:0', '--data-dir', join(directory, 'none'), ...words]);
    expect((await start('--tls-certificate', tls.certificate)).stderr).toContain(
      'tlsKey: tlsCertificate and tlsKey go',
    );
    expect((await start('--tls-key', tls.key)).stderr).toContain(
      'tlsCertificate: tlsCertificate and tlsKey go together',
    );
    const missing = await start('--tls-certificate', join(directory, 'nothing'), '--tls-key', tls.key);
    expect(missing.stderr).toContain('tlsCertificate: cannot read');
    await writeFile(join(directory, 'other.key'), 'no key');
    const other = await start('--tls-certificate', tls.certificate, '--tls-key', join(directory, 'other.key'));
    expect(other.stderr).toContain('is not a private key for');
  });
});
