import { describe, expect, it } from 'vitest';
import { imageKey, type ImageSpec } from '../../../api/resources/image.ts';
import { type Handler, page, refusal, runBerth, testHost } from '../../testing.ts';

describe('berth image', () => {
  it('add guesses only the packing, from the ending', async () => {
    const handler: Handler = () => ({ status: 201, json: { metadata: { name: 'debian' } } });
    const add = ['image', 'add', 'debian', '--source', 'https://example.org/d.qcow2.zst', '--no-cloud-init'];
    const { stdout, stderr, exitCode, requests } = await runBerth(add, { handler });
    expect({ stdout, exitCode }).toEqual({ stdout: 'image debian added\n', exitCode: 0 });
    expect(stderr).toContain('else 4 CPUs and 8 GiB memory; --cpus and --memory change this');
    expect((await runBerth([...add, '--cpus', '1', '--memory', '512M'], { handler })).stderr).toBe('');
    expect(requests[0]?.body).toMatchObject({
      metadata: { name: 'debian' },
      spec: { decompress: 'zstd', nocloud: false },
    });
  });

  it('add says what to write for a container image that is named as engines take it', async () => {
    const { stderr, exitCode, requests } = await runBerth(['image', 'add', 'web', '--source', 'nginx:1.27']);
    expect(stderr).toContain('--source cannot be "nginx:1.27"');
    expect(stderr).toContain('write --source docker://docker.io/library/nginx:1.27\n');
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  });

  const spec: ImageSpec = {
    source: 'file:///x',
    decompress: 'none',
    format: 'qcow2',
    nocloud: true,
    architecture: 'amd64',
    aliases: [],
    defaults: {},
    preload: false,
  };
  const image = { kind: 'image', metadata: { name: 'tiny', labels: {}, revision: 3 }, spec };
  const fetched = { name: 'tiny', digest: `sha256:${'a'.repeat(64)}`, sizeBytes: 5 * 1024 * 1024, key: imageKey(spec) };
  /** A host that shows `before`, and then `after`. */
  const hostThatFetches = (before: readonly object[], after: readonly object[]): Handler => {
    const host = (images: readonly object[]) => testHost('h1', { status: { images } });
    return ({ path, method, query, body }) => {
      if (path === '/v1/images/tiny')
        return { json: method === 'PUT' ? { ...image, ...(body as object), metadata: image.metadata } : image };
      if (query['watch']) return { lines: [{ type: 'put', revision: 8, resource: host(after) }] };
      return page([host(before), testHost('arm', { status: { architecture: 'arm64' } })]);
    };
  };

  it('ls shows what images take on hosts, or else at their source, and nothing when hosts may not be seen', async () => {
    const metadata = { ...image.metadata, createdAtMs: 0 };
    const images = [
      { ...image, metadata },
      { ...image, metadata: { ...metadata, name: 'far' }, spec: { ...spec, sizeBytes: 3 * 1024 * 1024 } },
    ];
    const list = (hosts: Handler): Promise<{ stdout: string }> =>
      runBerth(['image', 'ls'], {
        handler: (request) => (request.path === '/v1/images' ? page(images) : hosts(request)),
      });
    const shown = async (hosts: Handler): Promise<string> =>
      (await list(hosts)).stdout.replaceAll(/ +/g, ' ').replaceAll(/\n(\w+) .*? qcow2 /g, '\n$1 ');
    expect(await shown(() => page([testHost('h1', { status: { images: [fetched] } })]))).toMatch(
      /SIZE[^]*\nfar 3.0 MiB [^]*\ntiny 5.0 MiB /,
    );
    expect(await shown(() => refusal(403, 'Forbidden', 'hosts are not yours to see'))).toMatch(/\nfar 3.0 MiB /);
  });

  it('pull says why an image cannot be fetched, and does not wait for it', async () => {
    const missing = { name: 'tiny', digest: '', sizeBytes: 0, key: imageKey(spec), problem: 'HTTP 404 from x' };
    const handler = hostThatFetches([], [missing]);
    const { stdout, stderr, exitCode } = await runBerth(['image', 'pull', 'tiny'], { handler });
    expect(stdout).toBe('');
    expect(stderr).toContain('image "tiny" cannot be fetched; h1: HTTP 404 from x');
    expect(exitCode).toBe(7);
  });

  it('pull is content neither with an image of an earlier source nor ended by its failure', async () => {
    const earlier = { ...fetched, digest: `sha256:${'b'.repeat(64)}`, key: imageKey({ ...spec, source: 'file:///y' }) };
    const failed = { ...earlier, digest: '', problem: 'HTTP 404' };
    const unknown = { name: 'tiny', digest: earlier.digest, sizeBytes: 1 };
    const handler = hostThatFetches([earlier, failed, unknown], [earlier, fetched]);
    const { stdout, exitCode } = await runBerth(['image', 'pull', 'tiny'], { handler });
    expect(stdout).toBe('IMAGE  HOST     SIZE  DIGEST\ntiny   h1    5.0 MiB  sha256:aaaaaaaaaaaa\n');
    expect(exitCode).toBe(0);
  });

  it('prefetch asks for the image on the hosts and pools that are named, and waits for those', async () => {
    const other = testHost('h2', { status: { images: [] } });
    const inner = hostThatFetches([], [fetched]);
    const handler: Handler = (request) => {
      if (request.path === '/v1/pools') return page([{ metadata: { name: 'gpu' } }]);
      return request.path === '/v1/hosts' && !request.query['watch']
        ? page([testHost('h1', { status: { images: [] } }), other])
        : inner(request);
    };
    const prefetch = ['image', 'prefetch', 'tiny', '--host', 'h1', '--pool', 'gpu'];
    const { stdout, exitCode, requests } = await runBerth(prefetch, { handler });
    expect(stdout).toBe('IMAGE  HOST     SIZE  DIGEST\ntiny   h1    5.0 MiB  sha256:aaaaaaaaaaaa\n');
    expect(exitCode).toBe(0);
    expect(requests.find(({ method }) => method === 'PUT')?.body).toMatchObject({
      spec: { preload: false, prefetch: { hosts: ['h1'], pools: ['gpu'] } },
    });
    const nowhere = await runBerth(['image', 'prefetch', 'tiny'], { handler });
    expect(nowhere).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no host or pool is given') });
  });

  it('pin and unpin say that it stays, or may go', async () => {
    const pinned = { ...image, spec: { ...spec, pinned: true } };
    for (const [verb, before, after] of [
      ['pin', image, pinned],
      ['unpin', pinned, image],
    ] as const) {
      const handler: Handler = ({ method, body }) => ({ json: method === 'PUT' ? body : before });
      const { exitCode, requests } = await runBerth(['image', verb, 'tiny'], { handler });
      expect(exitCode).toBe(0);
      expect(requests.find(({ method }) => method === 'PUT')?.body).toMatchObject({ spec: after.spec });
      const again: Handler = () => ({ json: after });
      expect((await runBerth(['image', verb, 'tiny'], { handler: again })).requests.map((one) => one.method)).toEqual([
        'GET',
      ]);
    }
  });

  it('ls --hosts shows which host has it, for how many guests, and where it is missing', async () => {
    const h1 = testHost('h1', { status: { images: [{ ...fetched, guests: 3 }] } });
    const h2 = testHost('h2', { status: { images: [{ ...fetched, digest: '', sizeBytes: 0, problem: 'HTTP 404' }] } });
    const handler: Handler = ({ path }) => page(path === '/v1/hosts' ? [h2, h1] : [image]);
    const { stdout } = await runBerth(['image', 'ls', '--hosts'], { handler });
    expect(stdout).toBe(
      'IMAGE  HOST     SIZE  GUESTS  DIGEST               PROBLEM\n' +
        'tiny   h1    5.0 MiB       3  sha256:aaaaaaaaaaaa  -\n' +
        'tiny   h2          -       0  -                    HTTP 404\n',
    );
  });

  it('pull asks for the image everywhere and waits for the hosts that can use it', async () => {
    const handler = hostThatFetches([], [fetched]);
    const { stdout, stderr, exitCode } = await runBerth(['image', 'pull', 'tiny'], { handler });
    expect(stderr).toBe('tiny: on 0 of 1 hosts\n');
    expect(stdout).toBe('IMAGE  HOST     SIZE  DIGEST\ntiny   h1    5.0 MiB  sha256:aaaaaaaaaaaa\n');
    expect(exitCode).toBe(0);
  });
});
