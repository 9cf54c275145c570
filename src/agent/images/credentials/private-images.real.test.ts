// Private images from real servers on loopback: HTTP with a password or a token, redirects to another host, and a registry behind a password.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import { startImageServer } from '../fetch/test-image-server.ts';
import { startRegistry, whyNoRegistry } from '../fetch/test-registry.ts';
import { ensure, type ImageTrial, sha256, startImageTrial, testImage } from '../test-images.ts';
import { hostCredentials } from './image-credentials.ts';
import { startPrivateRegistry } from './test-private-registry.ts';

const password = 'planted-hunter22';
const basic = `Basic ${Buffer.from(`robot:${password}`).toString('base64')}`;
let trial: ImageTrial;
let file: string;

beforeEach(async () => {
  trial = await startImageTrial();
  file = join(trial.directory, 'password');
  await writeFile(file, `${password}\n`, { mode: 0o600 });
});
afterEach(() => trial.end());

/** Serves an image, and notes the Authorization of each request. */
function serve(server: ImageTrial['server'], path: string, wanted?: string) {
  const seen: (string | undefined)[] = [];
  const bytes = testImage();
  const served: Parameters<typeof server.files.set>[1] = {
    bytes,
    onRequest: ({ headers }) => {
      seen.push(headers.authorization);
      served.status = wanted === undefined || headers.authorization === wanted ? 200 : 401;
    },
  };
  server.files.set(path, served);
  return { seen, bytes };
}

describe('an image of an HTTP server', () => {
  it('is fetched with the user name and password of its prefix', async () => {
    const { bytes } = serve(trial.server, '/private/a.img', basic);
    const rule = { prefix: `${trial.server.url}/private`, username: 'robot', passwordFile: file };
    const cache = trial.cache({ credentials: hostCredentials([rule], systemClock) });
    expect((await ensure(cache, trial.spec('/private/a.img'))).digest).toBe(sha256(bytes));
  });

  it('is fetched with the token that a command prints', async () => {
    const { seen } = serve(trial.server, '/private/a.img', `Bearer ${password}`);
    const rule = { prefix: trial.server.url, tokenCommand: `echo said >&2; cat ${file}` };
    const cache = trial.cache({ credentials: hostCredentials([rule], systemClock) });
    await ensure(cache, trial.spec('/private/a.img'));
    expect(seen).toEqual([`Bearer ${password}`]);
  });

  it('is asked for without the credential of another path', async () => {
    const { seen } = serve(trial.server, '/privateer/a.img', basic);
    const rule = { prefix: `${trial.server.url}/private`, username: 'robot', passwordFile: file };
    const cache = trial.cache({ credentials: hostCredentials([rule], systemClock) });
    await expect(ensure(cache, trial.spec('/privateer/a.img'))).rejects.toThrow('answered 401; check the image');
    expect(seen).toEqual([undefined]);
  });

  it('says that a credential cannot be read, and never what a command said', async () => {
    const wrong = [
      { prefix: trial.server.url, username: 'robot', passwordFile: `${file}.missing` },
      { prefix: trial.server.url, tokenCommand: `echo ${password}; exit 3` },
    ];
    for (const rule of wrong) {
      const cache = trial.cache({ credentials: hostCredentials([rule], systemClock) });
      const failure = await ensure(cache, trial.spec('/a.img')).then(String, String);
      expect(failure).toContain(`cannot use the credential for ${trial.server.url}`);
      expect(failure).not.toContain(password);
    }
    expect(trial.server.requests).toEqual([]);
  });

  it('does not give its credential to another host that it redirects to', async () => {
    const other = await startImageServer();
    try {
      const there = serve(other, '/a.img');
      const here = serve(trial.server, '/private/a.img');
      const served = trial.server.files.get('/private/a.img');
      served!.onRequest = ({ headers }) => here.seen.push(headers.authorization);
      Object.assign(served!, { status: 302, headers: { location: `${other.url}/a.img` } });
      const rule = { prefix: trial.server.url, username: 'robot', passwordFile: file };
      const cache = trial.cache({ credentials: hostCredentials([rule], systemClock) });
      expect((await ensure(cache, trial.spec('/private/a.img'))).digest).toBe(sha256(there.bytes));
      expect(here.seen).toEqual([basic]);
      expect(there.seen).toEqual([undefined]);
    } finally {
      await other.close();
    }
  });

  it('that a project fetched is not handed to the guests of another', async () => {
    const { seen } = serve(trial.server, '/private/a.img', basic);
    const cache = trial.cache();
    const ask = (project: string, secret: string) =>
      cache.ensure('debian', trial.spec('/private/a.img'), {
        signal: new AbortController().signal,
        own: { project, credentials: [{ prefix: trial.server.url, username: 'robot', secret }] },
      });
    await ask('web', password);
    await ask('web', password);
    expect(seen).toEqual([basic]);
    await expect(ask('other', 'wrong')).rejects.toThrow('answered 401');
    await expect(ensure(cache, trial.spec('/private/a.img'))).rejects.toThrow('answered 401');
  });
});

describe.skipIf(whyNoRegistry())('a disk image of a registry', () => {
  it.each(['basic', 'bearer'] as const)('that asks for a password (%s) is fetched with it only', async (kind) => {
    const registry = await startRegistry();
    const door = await startPrivateRegistry({ behind: registry.address, kind, username: 'robot', password });
    try {
      const bytes = testImage();
      const digest = await registry.pushBlob('team/disk', bytes);
      const configDigest = await registry.pushBlob('team/disk', Buffer.from('{}'));
      const layer = { mediaType: 'application/octet-stream', digest, size: bytes.length };
      const config = { mediaType: 'application/vnd.oci.empty.v1+json', digest: configDigest, size: 2 };
      await registry.pushManifest('team/disk', '1', { config, layers: [layer] });
      const image = trial.spec(`oci://${door.address}/team/disk:1`);

      await expect(ensure(trial.cache(), image)).rejects.toThrow(/imageCredentials/);
      const wrong = { prefix: `${door.address}/tea`, username: 'robot', passwordFile: file };
      await expect(ensure(trial.cache({ credentials: hostCredentials([wrong], systemClock) }), image)).rejects.toThrow(
        /imageCredentials/,
      );
      expect(door.withPassword()).toBe(0);

      const rule = { ...wrong, prefix: `${door.address}/team` };
      const cache = trial.cache({ credentials: hostCredentials([rule], systemClock) });
      expect((await ensure(cache, image)).digest).toBe(sha256(bytes));
    } finally {
      await door.stop();
      await registry.stop();
    }
  });
});
