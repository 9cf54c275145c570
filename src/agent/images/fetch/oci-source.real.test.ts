import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseReference } from './oci-source.ts';
import { ensure, type ImageTrial, sha256, startImageTrial, testImage } from '../test-images.ts';
import { digestOf, startRegistry, type TestRegistry, whyNoRegistry } from './test-registry.ts';

let trial: ImageTrial;
beforeEach(async () => {
  trial = await startImageTrial();
});
afterEach(() => trial.end());

describe('a reference', () => {
  const hex = 'a'.repeat(64);
  it.each([
    ['oci://ghcr.io/org/disk:1.0', { registry: 'ghcr.io', name: 'org/disk', tag: '1.0', digest: undefined }],
    ['oci://localhost:5000/disk', { registry: 'localhost:5000', name: 'disk', tag: 'latest', digest: undefined }],
    [`oci://r/a/b/c@sha256:${hex}`, { registry: 'r', name: 'a/b/c', tag: 'latest', digest: `sha256:${hex}` }],
    [`oci://r/a:t@sha256:${hex}`, { registry: 'r', name: 'a', tag: 't', digest: `sha256:${hex}` }],
    ['oci://[::1]:5000/a__b/c-d.e:T_1', { registry: '[::1]:5000', name: 'a__b/c-d.e', tag: 'T_1', digest: undefined }],
  ])('%s is read', (text, expected) => {
    expect(parseReference(text)).toEqual(expected);
  });

  it.each([
    'oci://r/../../etc/passwd',
    'oci://r/A',
    'oci://r/a//b',
    'oci://r/a/../b',
    'oci://r/a:..',
    'oci://r/-snapshot',
    'oci://r/a@sha512:00',
    'oci://r/a@sha256:00',
    'oci://user:pass@r/a',
    'oci://r/a?x=y',
    'oci://r/json:{"a":1}',
    'oci://r',
    `oci://r/${'a'.repeat(300)}`,
    `oci://r/a:${'t'.repeat(200)}`,
  ])('%s is refused', (text) => {
    expect(() => parseReference(text)).toThrow('write it as oci://');
  });
});

const none = whyNoRegistry();
describe.skipIf(none !== undefined)(`a real registry${none === undefined ? '' : ` (${none})`}`, () => {
  let registry: TestRegistry;
  beforeAll(async () => {
    registry = await startRegistry();
  });
  afterAll(() => registry.stop());

  const emptyConfig = Buffer.from('{}');
  /** As `oras push` makes it. */
  const pushDisk = async (name: string, layers: readonly Buffer[], mediaType = 'application/octet-stream') => {
    await registry.pushBlob(name, emptyConfig);
    for (const layer of layers) await registry.pushBlob(name, layer);
    return registry.pushManifest(name, '1', {
      artifactType: 'application/vnd.example.disk',
      config: { mediaType: 'application/vnd.oci.empty.v1+json', digest: digestOf(emptyConfig), size: 2 },
      layers: layers.map((layer) => ({ mediaType, digest: digestOf(layer), size: layer.length })),
    });
  };
  const oci = (reference: string): string => `oci://${registry.address}/${reference}`;

  it('gives the one layer of an artifact, packed or not', async () => {
    const bytes = testImage();
    await pushDisk('plain', [bytes]);
    await pushDisk('packed/zstd', [zstdCompressSync(bytes)]);
    const cache = trial.cache({ checksumsRequired: true });
    const plain = await ensure(cache, trial.spec(oci('plain:1')), { name: 'plain' });
    expect(await readFile(plain.path)).toEqual(bytes);
    const packed = await ensure(cache, trial.spec(oci('packed/zstd:1'), { decompress: 'zstd' }), { name: 'packed' });
    expect(packed.digest).toBe(sha256(bytes));
    expect(packed.path).toBe(plain.path);
  });

  it('is held to the digest of the manifest, and to the checksum of the layer', async () => {
    const bytes = testImage();
    const digest = await pushDisk('pinned', [bytes]);
    const cache = trial.cache();
    expect((await ensure(cache, trial.spec(oci(`pinned@${digest}`)))).digest).toBe(sha256(bytes));
    expect((await ensure(cache, trial.spec(oci('pinned:1'), { checksum: sha256(bytes) }))).digest).toBe(sha256(bytes));
    const wrong = trial.spec(oci('pinned:1'), { checksum: sha256(Buffer.from('other')) });
    await expect(ensure(cache, wrong)).rejects.toMatchObject({ code: 'ImageChecksumMismatch' });
    await expect(ensure(cache, trial.spec(oci(`pinned@sha256:${'0'.repeat(64)}`)))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining('404'),
    });
  });

  it('gives the disk of a containerdisk out of its archive, whatever else is in that', async () => {
    const bytes = testImage();
    const root = join(trial.directory, 'root');
    mkdirSync(join(root, 'disk'), { recursive: true });
    mkdirSync(join(root, 'etc'));
    writeFileSync(join(root, 'etc', 'passwd'), 'x');
    writeFileSync(join(root, 'disk', 'debian.qcow2'), bytes);
    const tar = join(trial.directory, 'layer.tar');
    for (const format of ['ustar', 'gnu', 'pax']) {
      execFileSync('tar', [`--format=${format}`, '-C', root, '-cf', tar, '.']);
      const name = `containerdisk-${format}`;
      await pushDisk(name, [gzipSync(readFileSync(tar))], 'application/vnd.oci.image.layer.v1.tar+gzip');
      const { digest } = await ensure(trial.cache(), trial.spec(oci(`${name}:1`)), { name });
      expect(digest, format).toBe(sha256(bytes));
    }
  });

  it('is stopped where its archive unpacks to more than may, also by what is no disk', async () => {
    const root = join(trial.directory, 'root');
    mkdirSync(join(root, 'a'), { recursive: true });
    mkdirSync(join(root, 'disk'));
    writeFileSync(join(root, 'a', 'zeros'), Buffer.alloc(64 * 1024 * 1024));
    writeFileSync(join(root, 'disk', 'debian.qcow2'), testImage());
    const tar = join(trial.directory, 'layer.tar');
    execFileSync('tar', ['-C', root, '-cf', tar, 'a', 'disk']);
    await pushDisk('bomb', [gzipSync(readFileSync(tar))], 'application/vnd.oci.image.layer.v1.tar+gzip');
    const cache = trial.cache({ maxBytes: 8 * 1024 * 1024 });
    await expect(ensure(cache, trial.spec(oci('bomb:1')))).rejects.toMatchObject({ code: 'ImageTooLarge' });
  });

  it('gives what its index has for the architecture of the image', async () => {
    const [amd, arm] = [testImage(), testImage()];
    const manifests = [];
    for (const [architecture, bytes] of [
      ['amd64', amd],
      ['arm64', arm],
    ] as const) {
      const digest = await pushDisk('multi', [bytes]);
      const { headers } = await fetch(`http://${registry.address}/v2/multi/manifests/${digest}`, {
        method: 'HEAD',
        headers: { accept: 'application/vnd.oci.image.manifest.v1+json' },
      });
      const size = Number(headers.get('content-length'));
      const mediaType = 'application/vnd.oci.image.manifest.v1+json';
      manifests.push({ mediaType, digest, size, platform: { architecture, os: 'linux' } });
    }
    await registry.pushManifest('multi', 'all', { manifests }, 'application/vnd.oci.image.index.v1+json');
    const cache = trial.cache();
    const fetched = (architecture: 'amd64' | 'arm64') =>
      ensure(cache, trial.spec(oci('multi:all'), { architecture }), { name: architecture });
    expect((await fetched('amd64')).digest).toBe(sha256(amd));
    expect((await fetched('arm64')).digest).toBe(sha256(arm));
  });

  it('has no image where a container image is, or nothing', async () => {
    await pushDisk('container', [Buffer.from('one'), Buffer.from('two')]);
    await expect(ensure(trial.cache(), trial.spec(oci('container:1')))).rejects.toMatchObject({
      code: 'ImageInvalid',
      message: expect.stringContaining('2 layers'),
    });
    await expect(ensure(trial.cache(), trial.spec(oci('nothing:1')))).rejects.toMatchObject({
      code: 'ImageUnavailable',
    });
  });

  it('behind a token service is asked with a token, which its blob store is not told', async () => {
    const bytes = testImage();
    await pushDisk('guarded', [bytes]);
    const asked: string[] = [];
    const front = await serve((request, respond) => {
      const { authorization } = request.headers;
      asked.push(`${request.url?.split('?')[0]} ${authorization ?? 'nobody'}`);
      if (request.url?.startsWith('/token?')) {
        const query = new URLSearchParams(request.url.slice(7));
        expect(Object.fromEntries(query)).toEqual({ service: 'tests', scope: 'repository:guarded:pull' });
        return respond(200, {}, JSON.stringify({ token: 'abc' }));
      }
      if (request.url?.startsWith('/elsewhere')) return respond(200, {}, bytes);
      const realm = `http://${front.address}/token`;
      if (authorization !== 'Bearer abc')
        return respond(401, { 'www-authenticate': `Bearer realm="${realm}",service="tests",scope="ignored"` }, '');
      if (request.url?.includes('/blobs/'))
        return respond(307, { location: `http://localhost:${front.port}/elsewhere` }, '');
      void fetch(`http://${registry.address}${request.url}`, {
        headers: { accept: request.headers.accept ?? '' },
      }).then(async (answer) =>
        respond(
          answer.status,
          { 'content-type': answer.headers.get('content-type') ?? '' },
          Buffer.from(await answer.arrayBuffer()),
        ),
      );
    });
    const { digest } = await ensure(trial.cache(), trial.spec(`oci://${front.address}/guarded:1`));
    expect(digest).toBe(sha256(bytes));
    expect(asked).toEqual([
      '/v2/guarded/manifests/1 nobody',
      '/token nobody',
      '/v2/guarded/manifests/1 Bearer abc',
      `/v2/guarded/blobs/${digestOf(bytes)} Bearer abc`,
      '/elsewhere nobody',
    ]);
  });
});

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }
});
type Respond = (status: number, headers: Record<string, string>, body: string | Uint8Array) => void;
async function serve(
  handle: (
    request: { url?: string | undefined; headers: { authorization?: string; accept?: string } },
    respond: Respond,
  ) => void,
): Promise<{ address: string; port: number }> {
  const server = createServer((request, response) => {
    handle(request, (status, headers, body) => response.writeHead(status, headers).end(body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { address: `127.0.0.1:${port}`, port };
}

describe('a registry that lies', () => {
  const layer = testImage();
  const manifest = (layers: readonly object[]): string => JSON.stringify({ schemaVersion: 2, layers });
  const descriptor = { mediaType: 'a/b', digest: digestOf(layer), size: layer.length };
  const rows: readonly (readonly [string, string, string, string])[] = [
    ['with no manifest', 'not JSON', 'ImageInvalid', 'manifest is none'],
    ['with a manifest of version 1', '{"schemaVersion":1,"fsLayers":[]}', 'ImageInvalid', 'manifest is none'],
    ['with 10,000 layers', manifest(Array.from({ length: 10_000 }, () => descriptor)), 'ImageInvalid', 'at most 128'],
    ['with no layer', manifest([]), 'ImageInvalid', '0 layers'],
    ['with a path for a digest', manifest([{ ...descriptor, digest: '../../secret' }]), 'ImageInvalid', 'no sha256'],
    [
      'with a digest of another kind',
      manifest([{ ...descriptor, digest: `sha512:${'0'.repeat(128)}` }]),
      'ImageInvalid',
      'no sha256',
    ],
    [
      'with an index of indexes',
      `{"schemaVersion":2,"manifests":[{"digest":"${'x'.repeat(10)}"}]}`,
      'ImageInvalid',
      'no sha256',
    ],
    [
      'with an index for others',
      '{"schemaVersion":2,"manifests":[{"digest":"a","platform":{"architecture":"s390x","os":"linux"}}]}',
      'ImageInvalid',
      'nothing for linux/amd64',
    ],
    [
      'about the bytes of the layer',
      manifest([{ ...descriptor, digest: `sha256:${'1'.repeat(64)}` }]),
      'ImageChecksumMismatch',
      'has sha256:',
    ],
  ];
  it.each(rows)('%s is refused', async (_, text, code, message) => {
    const { address } = await serve((request, respond) =>
      respond(200, {}, request.url?.includes('/manifests/') ? text : layer),
    );
    await expect(ensure(trial.cache(), trial.spec(`oci://${address}/a:1`))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
    expect((await trial.left()).filter((name) => name.endsWith('.img'))).toEqual([]);
  });

  it('with a manifest of a hundred megabytes is cut off after four', async () => {
    let sent = 0;
    const { address } = await serve((_, respond) => {
      const body = Buffer.alloc(100 * 1024 * 1024, 0x20);
      sent = body.length;
      respond(200, {}, body);
    });
    await expect(ensure(trial.cache(), trial.spec(`oci://${address}/a:1`))).rejects.toMatchObject({
      code: 'ImageInvalid',
      message: expect.stringContaining('longer than the 4194304 bytes'),
    });
    expect(sent).toBeGreaterThan(4 * 1024 * 1024);
  });

  it('about the manifest that was pinned is found out', async () => {
    const { address } = await serve((_, respond) => respond(200, {}, manifest([descriptor])));
    await expect(
      ensure(trial.cache(), trial.spec(`oci://${address}/a@sha256:${'0'.repeat(64)}`)),
    ).rejects.toMatchObject({ code: 'ImageChecksumMismatch' });
  });

  it('asking for a password is refused, as is a token service that is none', async () => {
    for (const [challenge, message] of [
      ['Basic realm="x"', 'name and password'],
      ['Bearer realm="file:///etc/passwd"', 'no http URL'],
      ['Bearer realm="not a url"', 'name and password'],
    ] as const) {
      const { address } = await serve((_, respond) => respond(401, { 'www-authenticate': challenge }, ''));
      await expect(ensure(trial.cache(), trial.spec(`oci://${address}/a:1`))).rejects.toMatchObject({
        code: 'ImageUnavailable',
        message: expect.stringContaining(message),
      });
    }
  });

  it('whose tag moves while the layer is fetched is asked anew', async () => {
    const other = testImage();
    let blobs = 0;
    const { address } = await serve((request, respond) => {
      if (request.url?.includes('/manifests/'))
        return respond(200, {}, manifest([blobs === 0 ? descriptor : { ...descriptor, digest: digestOf(other) }]));
      if (++blobs === 1) return respond(503, {}, '');
      respond(200, {}, other);
    });
    expect((await ensure(trial.cache(), trial.spec(`oci://${address}/a:1`))).digest).toBe(sha256(other));
  });
});
