// What image servers do to those who fetch from them, each done by a real one on loopback.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { readFile } from 'node:fs/promises';
import { zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../base/clock.ts';
import { systemClock } from '../../../base/system.ts';
import { ensure, type ImageTrial, sha256, startImageTrial, testImage } from '../test-images.ts';

let trial: ImageTrial;
const others: Server[] = [];
beforeEach(async () => {
  trial = await startImageTrial();
});
afterEach(async () => {
  for (const server of others.splice(0)) {
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }
  await trial.end();
});

/** A server that answers as it is told, also against the rules of HTTP: `response.socket` is there. */
async function serve(
  handle: (request: IncomingMessage, response: ServerResponse, count: number) => void,
): Promise<string> {
  let count = 0;
  const server = createServer((request, response) => handle(request, response, ++count));
  others.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/image`;
}
/** Retries come at once: what waits between them is not the question here. */
const hurried: Clock = {
  ...systemClock,
  setTimer: (delayMs, fire, options) => systemClock.setTimer(delayMs >= 30_000 ? delayMs : 0, fire, options),
};

describe('a server that lies about the length', () => {
  it('sending more than it says, is read as far as it said, and the checksum decides', async () => {
    const bytes = testImage();
    const url = await serve((_, { socket }) => {
      socket?.end(
        `HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes.toString('latin1')}more than this`,
        'latin1',
      );
    });
    const cached = await ensure(trial.cache(), trial.spec(url, { checksum: sha256(bytes) }));
    expect(await readFile(cached.path)).toEqual(bytes);
  });

  it('sending less than it says, is asked for the rest, and given up when there is none', async () => {
    const bytes = testImage();
    const url = await serve((request, { socket }) => {
      const start = Number(/\d+/.exec(request.headers.range ?? '0')?.[0]);
      const status = start === 0 ? '200 OK' : `206 Partial Content\r\nContent-Range: bytes ${start}-999999/1000000`;
      socket?.end(
        `HTTP/1.1 ${status}\r\nETag: "1"\r\nContent-Length: ${1_000_000 - start}\r\n\r\n${bytes.toString('latin1', start)}`,
        'latin1',
      );
    });
    await expect(ensure(trial.cache({ attemptsMax: 2, clock: hurried }), trial.spec(url))).rejects.toMatchObject({
      code: 'ImageUnavailable',
    });
  });

  it('saying none and breaking off, is caught by the size, the checksum or the gate', async () => {
    const bytes = testImage();
    const url = await serve((_, { socket }) => {
      socket?.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${bytes.toString('latin1', 0, 300_000)}`, 'latin1');
    });
    for (const [more, code] of [
      [{ checksum: sha256(bytes) }, 'ImageChecksumMismatch'],
      [{ sizeBytes: bytes.length }, 'ImageChecksumMismatch'],
      [{}, 'ImageInvalid'],
    ] as const)
      await expect(ensure(trial.cache(), trial.spec(url, more))).rejects.toMatchObject({ code });
    expect((await trial.left()).filter((name) => name.endsWith('.img'))).toEqual([]);
  });
});

describe('a size that was asked for', () => {
  it('is held against what the server says before anything is fetched', async () => {
    trial.server.files.set('/a', { bytes: testImage() });
    await expect(ensure(trial.cache(), trial.spec('/a', { sizeBytes: 5 }))).rejects.toMatchObject({
      code: 'ImageChecksumMismatch',
      message: expect.stringContaining('not 5'),
    });
  });

  it('stops a server that never ends', async () => {
    const piece = Buffer.alloc(65_536, 1);
    const url = await serve((_, response) => {
      const write = (): void => {
        while (!response.destroyed && response.write(piece));
        if (!response.destroyed) response.once('drain', write);
      };
      write();
    });
    await expect(ensure(trial.cache(), trial.spec(url, { sizeBytes: 1_000_000 }))).rejects.toMatchObject({
      code: 'ImageChecksumMismatch',
    });
    await expect(ensure(trial.cache({ maxBytes: 2_000_000 }), trial.spec(url))).rejects.toMatchObject({
      code: 'ImageTooLarge',
    });
  });

  it('that is right, is no obstacle, and what was not asked for is recorded', async () => {
    const bytes = testImage();
    const packed = zstdCompressSync(bytes);
    trial.server.files.set('/a', { bytes: packed });
    const cache = trial.cache();
    await ensure(cache, trial.spec('/a', { decompress: 'zstd', sizeBytes: packed.length }));
    expect(await cache.list()).toEqual([
      { name: 'debian', digest: sha256(bytes), sizeBytes: bytes.length, checksum: sha256(packed) },
    ]);
  });
});

describe('a server that drips', () => {
  /** Each byte takes a second of this clock. */
  const dripping = async (bytes: Buffer): Promise<{ url: string; clock: Clock }> => {
    let passedMs = 0;
    const url = await serve((request, response) => {
      const start = Number(/\d+/.exec(request.headers.range ?? '0')?.[0]);
      response.writeHead(start === 0 ? 200 : 206, {
        'content-length': bytes.length - start,
        'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
        etag: '"1"',
      });
      let at = start;
      const drip = (): void => {
        if (response.destroyed || at >= bytes.length) return;
        response.write(bytes.subarray(at, ++at), () => setImmediate(drip));
      };
      drip();
    });
    const clock = { ...systemClock, monotonicMs: () => (passedMs += 500) };
    return { url, clock };
  };

  it('is given up', async () => {
    const { url, clock } = await dripping(testImage());
    await expect(ensure(trial.cache({ clock }), trial.spec(url))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringMatching(/only \d+ bytes came/),
    });
  });

  it('is left for a mirror, which goes on where it was', async () => {
    const bytes = testImage();
    const { url, clock } = await dripping(bytes);
    trial.server.files.set('/mirror', { bytes, etag: '"m"', anyRange: true });
    const spec = trial.spec(url, { checksum: sha256(bytes), mirrors: [`${trial.server.url}/mirror`] });
    const cached = await ensure(trial.cache({ clock }), spec);
    expect(await readFile(cached.path)).toEqual(bytes);
    expect(trial.server.requests).toEqual([expect.stringMatching(/^GET \/mirror bytes=[1-9]\d*-$/)]);
  });
});

describe('mirrors', () => {
  it('are tried in their order after the source', async () => {
    const bytes = testImage();
    trial.server.files.set('/c', { bytes });
    const mirrors = ['/a', '/b', '/c', '/d'].map((path) => `${trial.server.url}${path}`);
    const { digest } = await ensure(trial.cache(), trial.spec('/source', { mirrors }));
    expect(digest).toBe(sha256(bytes));
    expect(trial.server.requests).toEqual(['/source', '/a', '/b', '/c'].map((path) => `GET ${path} whole`));
  });

  it('take over from a source that breaks off, and without a checksum begin anew', async () => {
    const bytes = testImage();
    for (const checksum of [sha256(bytes), undefined]) {
      const url = await serve((_, response, count) => {
        if (count > 1) return void response.destroy();
        response.writeHead(200, { 'content-length': bytes.length, etag: '"1"' });
        response.write(bytes.subarray(0, 200_000), () => setImmediate(() => response.destroy()));
      });
      trial.server.files.set('/mirror', { bytes, etag: '"m"', anyRange: true });
      trial.server.requests.splice(0);
      const mirrors = [`${trial.server.url}/mirror`];
      const spec = trial.spec(url, { mirrors, ...(checksum === undefined ? {} : { checksum }) });
      const cached = await ensure(trial.cache({ clock: hurried }), spec);
      expect(await readFile(cached.path)).toEqual(bytes);
      expect(trial.server.requests[0]).toMatch(checksum === undefined ? /whole$/ : /bytes=[1-9]\d*-$/);
    }
  });

  it('of another content are told by the checksum, and the next is asked', async () => {
    const bytes = testImage();
    trial.server.files.set('/wrong', { bytes: testImage() });
    trial.server.files.set('/right', { bytes });
    const mirrors = [`${trial.server.url}/wrong`, `${trial.server.url}/right`];
    const { digest } = await ensure(trial.cache(), trial.spec('/gone', { checksum: sha256(bytes), mirrors }));
    expect(digest).toBe(sha256(bytes));
  });

  it('whose bytes do not fit what the source brought, are asked for the whole', async () => {
    const bytes = testImage();
    const damaged = Buffer.from(bytes);
    damaged[100_000] = 1;
    const url = await serve((_, response, count) => {
      if (count > 1) return void response.destroy();
      response.writeHead(200, { 'content-length': bytes.length, etag: '"1"' });
      response.write(damaged.subarray(0, 360_000), () => setImmediate(() => response.destroy()));
    });
    trial.server.files.set('/mirror', { bytes, etag: '"m"', anyRange: true });
    const spec = trial.spec(url, { checksum: sha256(bytes), mirrors: [`${trial.server.url}/mirror`] });
    const { digest } = await ensure(trial.cache({ clock: hurried }), spec);
    expect(digest).toBe(sha256(bytes));
    expect(trial.server.requests.at(-1)).toBe('GET /mirror whole');
  });

  it('that have it no more than the source are all told of', async () => {
    const mirrors = [`${trial.server.url}/b`];
    await expect(ensure(trial.cache(), trial.spec('/a', { mirrors }))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringMatching(/none of 2 sources.*\/a.*404.*\/b.*404/),
    });
  });

  it('are not asked when the image itself is bad', async () => {
    trial.server.files.set('/a', { bytes: Buffer.alloc(70_000, 1) });
    trial.server.files.set('/b', { bytes: testImage() });
    const mirrors = [`${trial.server.url}/b`];
    await expect(ensure(trial.cache(), trial.spec('/a', { mirrors }))).rejects.toMatchObject({ code: 'ImageInvalid' });
  });
});

describe('a file that changes while it is fetched', () => {
  it('though its ETag says it does not, is told by the checksum and fetched whole', async () => {
    const after = testImage();
    const before = testImage();
    after.copy(before);
    before[100_000] = 1;
    const file = { bytes: before, etag: '"1"', stallAfter: 360_000, faults: 1, onRequest: () => {} };
    file.onRequest = () => {
      if (trial.server.requests.length === 2) file.bytes = after;
    };
    trial.server.files.set('/a', file);
    const cached = await ensure(trial.cache({ clock: hurried }), trial.spec('/a', { checksum: sha256(after) }), {
      onProgress: ({ stage, doneBytes }) => {
        if (stage === 'downloading' && doneBytes > 0) trial.server.cut();
      },
    });
    expect(await readFile(cached.path)).toEqual(after);
    expect(trial.server.requests[1]).toMatch(/bytes=[1-9]/);
    expect(trial.server.requests.at(-1)).toBe('GET /a whole');
  });

  it('and packs it on the way though asked not to, is refused', async () => {
    trial.server.files.set('/a', { bytes: testImage(), headers: { 'content-encoding': 'gzip' } });
    await expect(ensure(trial.cache(), trial.spec('/a'))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining('packs it on the way'),
    });
  });
});

describe('where checksums are required', () => {
  it('nothing comes over a network without one, and everything with one', async () => {
    const bytes = testImage();
    trial.server.files.set('/a', { bytes });
    const cache = trial.cache({ checksumsRequired: true });
    await expect(ensure(cache, trial.spec('/a'))).rejects.toMatchObject({
      code: 'ImageChecksumMismatch',
      message: expect.stringContaining('no checksum'),
    });
    expect(trial.server.requests).toEqual([]);
    expect((await ensure(cache, trial.spec('/a', { checksum: sha256(bytes) }))).digest).toBe(sha256(bytes));
  });
});
