import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../../base/log.ts';
import { systemClock, systemFetch } from '../../../../base/system.ts';
import { createImageContent, type ImageContentOptions } from '../../../images/image-content.ts';
import { startTestServer } from '../../../testing.ts';

let directory = '';
let server: Awaited<ReturnType<typeof startTestServer>>;
/** Why the gate refuses; undefined: it does not. */
let refusal: string | undefined;
const contentIn = (more: Partial<ImageContentOptions> = {}) =>
  createImageContent({
    directory: join(directory, 'images'),
    bytesMax: 1_000_000,
    inspect: async () =>
      refusal === undefined
        ? { ok: true, digest: `sha256:${'d'.repeat(64)}`, virtualSizeBytes: 1024 }
        : { ok: false, reason: refusal },
    owner: 'this',
    clock: systemClock,
    log: silentLogger,
    ...more,
  });
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-content-'));
  refusal = undefined;
  server = await startTestServer({ imageContent: contentIn() });
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const hexOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
interface Put {
  readonly offset?: number;
  readonly hex?: string;
  readonly total?: number;
  readonly more?: string;
  readonly token?: string;
  readonly name?: string;
  readonly type?: string;
}
const put = async (file: Buffer, piece: Buffer, change: Put = {}): Promise<{ status: number; body: unknown }> => {
  const { offset = 0, hex = hexOf(file), total = file.length, more = '', token = 'operator', name = 'debian' } = change;
  const url = `${server.url}/v1/images/${name}/content?checksum=sha256:${hex}&totalBytes=${total}&offset=${offset}${more}`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': change.type ?? 'application/octet-stream' };
  const answer = await systemFetch(url, { method: 'PUT', headers, body: new Uint8Array(piece) });
  return { status: answer.status, body: await answer.json() };
};
const fetched = (hex: string, headers: Record<string, string> = {}, host = 'h1'): Promise<Response> =>
  systemFetch(`${server.url}/v1/hosts/h1/image-content/${hex}`, {
    headers: { authorization: `Bearer host:${host}`, ...headers },
  });

describe('an upload', () => {
  it('in pieces becomes an image when the last one is there', async () => {
    const file = randomBytes(300_000);
    expect(await put(file, file.subarray(0, 200_000))).toEqual({
      status: 202,
      body: { complete: false, receivedBytes: 200_000 },
    });
    await expect(server.client.get('image', 'debian')).rejects.toMatchObject({ code: 'NotFound' });
    expect((await fetched(hexOf(file))).status).toBe(404);
    expect(await put(file, file.subarray(200_000), { offset: 200_000, more: '&format=raw' })).toMatchObject({
      status: 200,
      body: { complete: true, digest: `sha256:${'d'.repeat(64)}`, image: { metadata: { name: 'debian' } } },
    });
    expect((await server.client.get('image', 'debian')).spec).toMatchObject({
      source: `berth://sha256/${hexOf(file)}`,
      checksum: `sha256:${hexOf(file)}`,
      sizeBytes: 300_000,
      format: 'raw',
    });
    expect(await readdir(join(directory, 'images'))).toEqual([hexOf(file)]);
  });

  it('to an image that is there changes its file and nothing else', async () => {
    await server.client.create('image', {
      metadata: { name: 'debian', labels: { a: 'b' } },
      spec: {
        source: 'https://example.org/a',
        mirrors: ['https://example.net/a'],
        aliases: ['default'],
        nocloud: false,
      },
    });
    const file = randomBytes(1000);
    await put(file, file);
    const { metadata, spec } = await server.client.get('image', 'debian');
    expect(metadata.labels).toEqual({ a: 'b' });
    expect(spec).toMatchObject({ aliases: ['default'], nocloud: false, source: `berth://sha256/${hexOf(file)}` });
    expect(spec.mirrors).toBeUndefined();
  });

  it('that goes on elsewhere than where it was is told where', async () => {
    const file = randomBytes(3000);
    await put(file, file.subarray(0, 1000));
    for (const offset of [0, 500, 2000])
      expect(await put(file, file.subarray(offset), { offset })).toMatchObject({
        status: 409,
        body: { error: { code: 'Conflict', details: { receivedBytes: 1000 } } },
      });
    expect((await put(file, file.subarray(1000), { offset: 1000 })).status).toBe(200);
  });

  it('that breaks off goes on with what came of it', async () => {
    const file = randomBytes(300_000);
    await new Promise<void>((resolve) => {
      const url = `${server.url}/v1/images/debian/content?checksum=sha256:${hexOf(file)}&totalBytes=300000`;
      const headers = {
        authorization: 'Bearer operator',
        'content-type': 'application/octet-stream',
        'content-length': 300_000,
      };
      const sending = request(url, { method: 'PUT', headers });
      sending.on('error', () => resolve());
      sending.write(file.subarray(0, 100_000), () => sending.destroy(new Error('cut')));
    });
    for (;;) {
      const { status, body } = await put(file, file, {});
      if (status === 200) break; // nothing of it had arrived
      const { details } = (body as { error: { details?: { receivedBytes?: number } } }).error;
      const at = details?.receivedBytes;
      if (at === undefined) continue; // the broken one is still being noticed
      expect(at).toBeLessThanOrEqual(100_000);
      expect((await put(file, file.subarray(at), { offset: at })).status).toBe(200);
      break;
    }
    expect(Buffer.from(await (await fetched(hexOf(file))).arrayBuffer())).toEqual(file);
  });

  it('of the same file by two at once is written by one', async () => {
    const file = randomBytes(500_000);
    const answers = await Promise.all([put(file, file), put(file, file), put(file, file, { name: 'other' })]);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    for (const { status } of answers) expect([200, 409]).toContain(status);
    expect((await put(file, file, { name: 'other' })).status).toBe(200); // it is here already
    expect(await readdir(join(directory, 'images'))).toEqual([hexOf(file)]);
  });

  const refused: readonly (readonly [string, Put, number, string])[] = [
    ['of another content', { hex: 'a'.repeat(64) }, 400, 'has the checksum'],
    ['longer than announced', { total: 500 }, 400, 'more than the 500 bytes'],
    ['larger than allowed', { total: 2_000_000 }, 413, 'more than the 1000000'],
    ['without a checksum that is one', { hex: 'abc' }, 400, 'checksum must be'],
    ['with a path for a checksum', { hex: '../../../etc/passwd' }, 400, 'checksum must be'],
    ['of a format that is none', { more: '&format=vmdk' }, 400, 'format'],
    ['with a word nobody knows', { more: '&formt=raw' }, 400, 'did you mean "format"'],
    ['to a name that is none', { name: '..%2Fx' }, 400, 'name'],
    ['by a host', { token: 'host:h1' }, 403, 'does not permit'],
    ['as JSON', { type: 'application/json' }, 400, 'JSON'],
    ['as anything else', { type: 'text/plain' }, 415, 'application/json'],
  ];
  it.each(refused)('%s is refused', async (_, change, status, message) => {
    const file = randomBytes(1000);
    const answer = await put(file, file, change);
    expect(answer).toMatchObject({ status, body: { error: { message: expect.stringContaining(message) } } });
    await expect(server.client.get('image', 'debian')).rejects.toMatchObject({ code: 'NotFound' });
  });

  it('that the gate refuses leaves nothing, and says why', async () => {
    refusal = 'it has a backing file';
    const file = randomBytes(1000);
    expect(await put(file, file)).toMatchObject({
      status: 400,
      body: { error: { field: 'content', message: expect.stringContaining('it has a backing file') } },
    });
    expect(await readdir(join(directory, 'images'))).toEqual([]);
  });

  it('to a disk that is full says so, and goes on when there is room', async ({ skip }) => {
    const small = join(directory, 'images');
    await mkdir(small);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=100k', 'tmpfs', small], { stdio: 'ignore' });
    } catch {
      skip('mounting a small disk needs root');
    }
    try {
      const file = randomBytes(200_000);
      expect(await put(file, file)).toMatchObject({ status: 507, body: { error: { code: 'StoreFull' } } });
      execFileSync('mount', ['-o', 'remount,size=1m', small]);
      const again = await put(file, file);
      if (again.status === 200) return; // the disk was full with the first bytes of it
      const at = (again.body as { error: { details: { receivedBytes: number } } }).error.details.receivedBytes;
      expect((await put(file, file.subarray(at), { offset: at })).status).toBe(200);
    } finally {
      execFileSync('umount', [small]);
    }
  });

  it('is not possible where the other routes take JSON only', async () => {
    const answer = await systemFetch(`${server.url}/v1/images`, {
      method: 'POST',
      headers: { authorization: 'Bearer operator', 'content-type': 'application/octet-stream' },
      body: '{}',
    });
    expect(answer.status).toBe(415);
  });
});

describe('an uploaded file', () => {
  it('is served to agents, whole or from anywhere', async () => {
    const file = randomBytes(1000);
    const hex = hexOf(file);
    await put(file, file);
    const whole = await fetched(hex);
    expect(whole.headers.get('content-length')).toBe('1000');
    const etag = whole.headers.get('etag') ?? '';
    expect(Buffer.from(await whole.arrayBuffer())).toEqual(file);
    const rest = await fetched(hex, { range: 'bytes=400-', 'if-range': etag });
    expect([rest.status, rest.headers.get('content-range')]).toEqual([206, 'bytes 400-999/1000']);
    expect(Buffer.from(await rest.arrayBuffer())).toEqual(file.subarray(400));
    const beyond = await fetched(hex, { range: 'bytes=1000-' });
    expect([beyond.status, (await beyond.arrayBuffer()).byteLength]).toEqual([200, 1000]);
    const other = await fetched(hex, { range: 'bytes=400-', 'if-range': '"other"' });
    expect([other.status, (await other.arrayBuffer()).byteLength]).toEqual([200, 1000]);
  });

  it('is not there for other hosts, under other names, or where it never came', async () => {
    const file = randomBytes(1000);
    await put(file, file);
    expect((await fetched(hexOf(file), {}, 'h2')).status).toBe(403);
    expect((await fetched('..%2F..%2Fetc%2Fpasswd')).status).toBe(404);
    const absent = await fetched('e'.repeat(64));
    expect(absent.status).toBe(404);
    expect(await absent.json()).toMatchObject({ error: { message: expect.stringContaining('imageDirectory') } });
  });

  it('goes a day after no image names it, at the next upload', async () => {
    const [old, current, partial] = ['a', 'b', 'c'].map((letter) => letter.repeat(64));
    await mkdir(join(directory, 'images'));
    const parts = [
      `${partial}.part`,
      `${partial}.${'0'.repeat(16)}.part`,
      `${current}.${'0'.repeat(16)}.part.unpacking`,
    ];
    for (const name of [old, current, ...parts, 'notes.txt']) {
      await writeFile(join(directory, 'images', name ?? ''), 'x');
      await utimes(join(directory, 'images', name ?? ''), 1, 1);
    }
    await server.client.create('image', {
      metadata: { name: 'named' },
      spec: { source: `berth://sha256/${current}` },
    });
    const file = randomBytes(10);
    await put(file, file);
    expect((await readdir(join(directory, 'images'))).sort()).toEqual([current, hexOf(file), 'notes.txt'].sort());
  });

  it('stays when it is uploaded anew after that day, though its image is not there yet', async () => {
    const content = contentIn();
    const file = randomBytes(10);
    const piece = {
      ...({ hex: hexOf(file), totalBytes: file.length, offset: 0, format: 'raw', decompress: 'none' } as const),
      bytes: (async function* () {
        yield file;
      })(),
    };
    expect(await content.receive(piece)).toMatchObject({ complete: true });
    await utimes(join(directory, 'images', hexOf(file)), 1, 1);
    expect(await content.receive(piece)).toMatchObject({ complete: true });
    await content.sweep(new Set());
    expect(await readdir(join(directory, 'images'))).toEqual([hexOf(file)]);
  });
});

describe('control planes that share the folder', () => {
  const file = randomBytes(300_000);
  const hex = hexOf(file);
  const [one, two] = ['one', 'two'].map((owner) => () => contentIn({ owner }));
  /** Each chunk comes when its promise is there. */
  const pieceOf = (offset: number, chunks: readonly Uint8Array[], released: Promise<unknown>[] = []) => ({
    ...({ hex, totalBytes: file.length, offset, format: 'raw', decompress: 'none' } as const),
    bytes: (async function* () {
      for (const [i, chunk] of chunks.entries()) {
        await released[i];
        yield chunk;
      }
    })(),
  });
  const here = (): Promise<string[]> => readdir(join(directory, 'images'));
  const served = async (): Promise<Buffer> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await contentIn().read(hex, 0)).bytes) chunks.push(chunk);
    return Buffer.concat(chunks);
  };

  it('take an upload over from each other, piece by piece, as a balancer sends them', async () => {
    const planes = [one?.() ?? expect.unreachable(), two?.() ?? expect.unreachable()];
    for (let at = 0, turn = 0; at < file.length; at += 50_000, turn++) {
      const received = await planes[turn % 2]?.receive(pieceOf(at, [file.subarray(at, at + 50_000)]));
      expect(received).toMatchObject({ receivedBytes: at + 50_000, complete: at + 50_000 === file.length });
    }
    expect(await served()).toEqual(file);
  });

  it('do not change what the other has found to be good', async () => {
    const first = one?.() ?? expect.unreachable();
    const second = two?.() ?? expect.unreachable();
    const go = Promise.withResolvers<void>();
    const wrong = Buffer.alloc(100_000, 'x');
    const writing = second.receive(pieceOf(0, [wrong, wrong, wrong], [Promise.resolve(), go.promise]));
    while ((await here().catch(() => [])).length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await first.receive(pieceOf(0, [file]))).toMatchObject({ complete: true });
    go.resolve();
    await expect(writing).rejects.toMatchObject({ code: 'InvalidRequest', field: 'checksum' });
    expect(await served()).toEqual(file);
    expect(await here()).toEqual([hex]);
    // And what is there already is there for both.
    expect(await second.receive(pieceOf(0, [file]))).toMatchObject({ complete: true });
  });

  it('do not meet in a whole file either', async () => {
    const planes = [one?.() ?? expect.unreachable(), two?.() ?? expect.unreachable()];
    const go = Promise.withResolvers<void>();
    const halves = [file.subarray(0, 150_000), file.subarray(150_000)];
    const taken = planes.map((plane) =>
      plane.take({ ...pieceOf(0, halves, [Promise.resolve(), go.promise]), key: 'same' }),
    );
    while ((await here().catch(() => [])).length < 2) await new Promise((resolve) => setImmediate(resolve));
    go.resolve();
    for (const { hex: found } of await Promise.all(taken)) expect(found).toBe(hex);
    expect(await served()).toEqual(file);
  });
});
