// A real container registry for tests (Debian's docker-registry) on loopback, with what it takes to push into it. It ends with the test.

import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../base/test-ports.ts';

const program = '/usr/bin/docker-registry';

export interface TestRegistry {
  /** `127.0.0.1:5000`. */
  readonly address: string;
  /** The digest of the blob. */
  pushBlob(name: string, bytes: Uint8Array): Promise<string>;
  /** The digest of the manifest. */
  pushManifest(name: string, tag: string, manifest: object, mediaType?: string): Promise<string>;
  stop(): Promise<void>;
}

/** Why there can be none here; undefined: there can. */
export function whyNoRegistry(): string | undefined {
  return existsSync(program) ? undefined : 'no registry is installed (package docker-registry)';
}

export const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export async function startRegistry(): Promise<TestRegistry> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-registry-'));
  const address = `127.0.0.1:${await freePort()}`;
  const config = {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: join(directory, 'storage') } },
    http: { addr: address },
  };
  await writeFile(join(directory, 'config.yml'), JSON.stringify(config));
  const child = spawn(program, ['serve', join(directory, 'config.yml')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-2000);
  });
  await answers(child, `http://${address}/v2/`, () => said);
  const send = async (method: string, url: string, body?: Uint8Array | string, type = 'application/octet-stream') => {
    const answer = await fetch(new URL(url, `http://${address}`), {
      method,
      headers: body === undefined ? {} : { 'content-type': type },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  return {
    address,
    async pushBlob(name, bytes) {
      const begun = await send('POST', `/v2/${name}/blobs/uploads/`);
      const url = new URL(begun.headers.get('location') ?? '', `http://${address}`);
      url.searchParams.set('digest', digestOf(bytes));
      await send('PUT', url.href, bytes);
      return digestOf(bytes);
    },
    async pushManifest(name, tag, manifest, mediaType = 'application/vnd.oci.image.manifest.v1+json') {
      const text = JSON.stringify({ schemaVersion: 2, mediaType, ...manifest });
      await send('PUT', `/v2/${name}/manifests/${tag}`, text, mediaType);
      return digestOf(Buffer.from(text));
    },
    async stop() {
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      child.kill('SIGKILL');
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function answers(child: ChildProcess, url: string, said: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the registry ended: ${said()}`);
    const there = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
    if (there) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
