import type { LookupAddress } from 'node:dns';
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addressKind } from '../../../base/net/address-kind.ts';
import { createHttpGet, type HttpGetOptions } from './http-get.ts';

/** On every loopback address, so that one stands for the open network and another for a private one. */
let server: Server;
let port = 0;
let seen: { url: string; host: string; authorization: string | undefined }[] = [];
let answer: (url: string) => { status: number; headers?: Record<string, string> } = () => ({ status: 200 });
beforeEach(async () => {
  seen = [];
  answer = () => ({ status: 200 });
  server = createServer((request, response) => {
    const { host = '', authorization } = request.headers;
    seen.push({ url: request.url ?? '', host, authorization });
    const { status, headers } = answer(request.url ?? '');
    response.writeHead(status, headers ?? {}).end('body');
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
afterEach(
  () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
);

const names: Record<string, readonly string[]> = {
  'public.test': ['127.0.0.2'],
  'private.test': ['127.0.0.3'],
  'mixed.test': ['127.0.0.2', '127.0.0.3'],
  'metadata.test': ['169.254.169.254'],
  'nothing.test': [],
};
/** 127.0.0.2 is taken for public; every other address is what it is. */
const getting = (privateAddresses: HttpGetOptions['privateAddresses'], lookups = { count: 0 }) =>
  createHttpGet({
    privateAddresses,
    kindOf: (address) => (address === '127.0.0.2' ? 'public' : addressKind(address)),
    lookup: ((name: string, _options: unknown, done: (error: Error | null, found: LookupAddress[]) => void) => {
      lookups.count++;
      done(
        null,
        (names[name] ?? []).map((address) => ({ address, family: 4 })),
      );
    }) as never, // of its overloads only this one is used
  });
const call = { headers: {}, signal: new AbortController().signal, checksummed: false };
const fetched = async (get: ReturnType<typeof getting>, url: string): Promise<number> => {
  const { status, close } = await get(url, call);
  close();
  return status;
};

describe('an image URL', () => {
  const forms = [
    'http://127.0.0.3:PORT/',
    'http://0x7f000003:PORT/',
    'http://2130706435:PORT/',
    'http://0177.0.0.3:PORT/',
    'http://127.3:PORT/',
    'http://[::1]:PORT/',
    'http://[::ffff:127.0.0.3]:PORT/',
    'http://[::ffff:10.0.0.1]:PORT/',
    'http://[64:ff9b::a00:1]:PORT/',
    'http://100.64.0.1:PORT/',
    'http://[fd00::1]:PORT/',
    'http://private.test:PORT/',
    'http://PRIVATE.test.:PORT/',
    'http://mixed.test:PORT/',
  ];
  it.each(forms)('that leads to a private address is refused where those are denied: %s', async (form) => {
    names['private.test.'] = ['127.0.0.3'];
    await expect(fetched(getting('deny'), form.replace('PORT', String(port)))).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining('private address'),
    });
    expect(seen).toEqual([]);
  });

  it.each(['http://169.254.169.254/latest/', 'http://metadata.test/', 'http://0.0.0.0:PORT/', 'http://[fe80::1]/'])(
    'that leads where no image is served is refused though private ones are not: %s',
    async (form) => {
      await expect(fetched(getting('named'), form.replace('PORT', String(port)))).rejects.toMatchObject({
        code: 'ImageUnavailable',
        message: expect.stringContaining('where no image is served'),
      });
      expect(seen).toEqual([]);
    },
  );

  it.each([
    ['file:///etc/passwd', 'no http URL'],
    ['gopher://public.test/', 'no http URL'],
    ['http://user:secret@public.test:PORT/', 'name or password'],
    ['http://public.test:22/', 'port 22'],
    ['http://public.test:2379/', 'port 2379'],
    ['http://public.test:5432/', 'port 5432'],
    ['http://public.test:5672/', 'port 5672'],
  ])('%s is refused whatever is allowed', async (form, why) => {
    const refusal = fetched(getting('allow'), form.replace('PORT', String(port)));
    await expect(refusal).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining(why),
    });
    await expect(refusal).rejects.not.toMatchObject({ message: expect.stringContaining('secret') });
    expect(seen).toEqual([]);
  });

  it('that names a private address itself is fetched, unless those are denied', async () => {
    expect(await fetched(getting('named'), `http://127.0.0.3:${port}/a`)).toBe(200);
    expect(await fetched(getting('named'), `http://private.test:${port}/b`)).toBe(200);
    expect(seen.map(({ host }) => host)).toEqual([`127.0.0.3:${port}`, `private.test:${port}`]);
  });

  it('is asked for at the address that was looked at: the name is resolved once', async () => {
    const lookups = { count: 0 };
    expect(await fetched(getting('deny', lookups), `http://public.test:${port}/`)).toBe(200);
    expect(lookups.count).toBe(1);
  });

  it('whose name has no address is a failure of the network, not a refusal', async () => {
    await expect(fetched(getting('deny'), `http://nothing.test:${port}/`)).rejects.not.toMatchObject({
      code: 'ImageUnavailable',
    });
  });
});

describe('a redirect', () => {
  const redirecting = (to: string, status = 302): void => {
    answer = (url) => (url === '/first' ? { status, headers: { location: to } } : { status: 200 });
  };

  it.each([301, 302, 303, 307, 308])('by %i is followed', async (status) => {
    redirecting('/second', status);
    const { url, close } = await getting('deny')(`http://public.test:${port}/first`, call);
    close();
    expect(url).toBe(`http://public.test:${port}/second`);
  });

  it.each(['deny', 'named'] as const)('from a public server to a private one is refused under "%s"', async (rule) => {
    redirecting(`http://private.test:${port}/inside`);
    await expect(fetched(getting(rule), `http://public.test:${port}/first`)).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining('private'),
    });
    expect(seen.map(({ url }) => url)).toEqual(['/first']);
  });

  it('from a public server to a private one is followed only where all is allowed', async () => {
    redirecting(`http://private.test:${port}/inside`);
    expect(await fetched(getting('allow'), `http://public.test:${port}/first`)).toBe(200);
  });

  it('between private servers is followed when the image named the first', async () => {
    redirecting(`http://127.0.0.4:${port}/other`);
    expect(await fetched(getting('named'), `http://private.test:${port}/first`)).toBe(200);
  });

  it.each([
    'http://169.254.169.254/',
    'file:///etc/passwd',
    'gopher://x/',
    'http://a:b@public.test/',
    'http://public.test:22/',
  ])('to %s is refused', async (to) => {
    redirecting(to);
    await expect(fetched(getting('named'), `http://public.test:${port}/first`)).rejects.toMatchObject({
      code: 'ImageUnavailable',
    });
  });

  it('in a loop ends', async () => {
    answer = () => ({ status: 302, headers: { location: '/again' } });
    await expect(fetched(getting('deny'), `http://public.test:${port}/first`)).rejects.toMatchObject({
      code: 'ImageUnavailable',
      message: expect.stringContaining('more than 5 times'),
    });
    expect(seen.length).toBe(6);
  });

  it('to another server is not told the token of the first', async () => {
    redirecting(`http://127.0.0.2:${port}/blob`);
    const headers = { authorization: 'Bearer secret' };
    const { close } = await getting('deny')(`http://public.test:${port}/first`, { ...call, headers });
    close();
    expect(seen.map(({ authorization }) => authorization)).toEqual(['Bearer secret', undefined]);
  });
});
