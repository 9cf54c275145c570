// Into a guest and out again, as users go: real server, agent, QEMU and the tiny image; the command line as a process of its own.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { system } from '../src/base/system.ts';
import { type Fleet, runBerth, startFleet } from './processes.ts';
import { type RunningCommand, runningCommand } from './running-command.ts';
import { tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Fleet;
const children: ChildProcess[] = [];

beforeAll(async () => {
  const tiny = await tinyImage();
  directory = await mkdtemp(join(tmpdir(), 'berth-access-'));
  await chmod(directory, 0o711); // so that QEMU runs as a user of its own
  fleet = await startFleet(directory);
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
  await fleet.client.create('instance', {
    metadata: { name: 'web' },
    spec: { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 0 },
  });
  await fleet.ready('web');
}, 120_000);
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
afterAll(async () => {
  await fleet.removeAll();
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

/** `berth WORDS`, running, until the test is over. */
function berth(...words: string[]): RunningCommand {
  const command = runningCommand(fleet.environment, words);
  children.push(command.child);
  return command;
}

/** A client of its own making: what it was answered, or the code that it was refused with. */
async function knock(
  path: string,
  { protocols = ['berth.v1'], headers }: { protocols?: string[]; headers?: Record<string, string> } = {},
): Promise<{ socket?: WebSocket; refused?: { status: number; code: string } }> {
  const socket = new WebSocket(`${fleet.url.replace('http', 'ws')}${path}`, protocols, {
    headers: headers ?? { authorization: `Bearer ${fleet.environment.BERTH_TOKEN}` },
  });
  return new Promise((resolve) => {
    socket.on('error', () => {});
    socket.once('open', () => {
      socket.pause(); // until somebody listens
      resolve({ socket });
    });
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (bytes: Buffer) => (text += bytes.toString()));
      response.once('end', () =>
        resolve({ refused: { status: response.statusCode ?? 0, code: JSON.parse(text).error.code } }),
      );
    });
  });
}

describe('the console', () => {
  it('shows what was said before, takes what is typed, and is the same for everybody at it', async () => {
    const one = berth('console', 'web', '--history', '100000');
    await one.until(/berth: ready/);
    const two = berth('console', 'web', '--history', '0');
    one.type('echo $((6*7))-one\r');
    await one.until(/\n42-one/);
    two.type('echo $((6*7))-two\r');
    expect(await two.until(/\n42-two/)).not.toContain('berth: ready');
    expect(await one.until(/\n42-two/)).toMatch(/berth: ready[^]*42-one[^]*42-two/);
  });

  it('is found again when the server was away, at the byte where it was', async () => {
    const sitting = berth('console', 'web', '--history', '0');
    sitting.type('echo $((6*7))-before\r');
    await sitting.until(/\n42-before/);
    await fleet.restartServer();
    for (;;) {
      sitting.type('echo $((6*7))-after\r');
      const seen = await Promise.race([
        sitting.until(/\n42-after/),
        new Promise<void>((resolve) => setTimeout(resolve, 500)),
      ]);
      if (seen === undefined) continue; // what is typed while there is no connection is lost, as at any console
      expect(seen.match(/\n42-before/g)).toHaveLength(1);
      return;
    }
  });
});

/** On which QEMU listens for the guest. */
async function portsOfQemu(): Promise<string> {
  const linked = (path: string): Promise<string> => readlink(path).catch(() => ''); // gone
  const files = new Set<string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name))) {
    if (!(await linked(`/proc/${pid}/cwd`)).startsWith(directory)) continue;
    if (!(await linked(`/proc/${pid}/exe`)).includes('qemu-system')) continue;
    for (const file of await readdir(`/proc/${pid}/fd`).catch(() => []))
      files.add(await linked(`/proc/${pid}/fd/${file}`));
  }
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((row) => row.trim().split(/\s+/));
  const listening = rows.filter(([, , , state, , , , , , inode]) => state === '0A' && files.has(`socket:[${inode}]`));
  return listening
    .map(([, address]) => address)
    .sort()
    .join(' ');
}

describe('ports', () => {
  it('that are not published are brought here, and close with the guest’s answer', async () => {
    const forwarding = berth('port-forward', 'web', '0:80');
    const port = Number(/127\.0\.0\.1:(\d+) is port 80 of web/.exec(await forwarding.until(/is port 80/))?.[1]);
    for (let i = 0; i < 3; i++)
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('Hello from web');
  });

  it('take what is said after the other end has closed its half', async () => {
    const forwarding = berth('port-forward', 'web', '0:80');
    const port = Number(/:(\d+) is port/.exec(await forwarding.until(/is port 80/))?.[1]);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.end('GET / HTTP/1.0\r\n\r\n');
    let answer = '';
    for await (const bytes of socket) answer += String(bytes);
    expect(answer).toContain('Hello from web');
  });

  it('that an agent left open when it was killed are closed by the next one', async () => {
    const before = await portsOfQemu();
    const forwarding = berth('port-forward', 'web', '0:80');
    const port = Number(/:(\d+) is port/.exec(await forwarding.until(/is port 80/))?.[1]);
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => {}); // its end is what is awaited
    socket.write('GET / HTTP/1.0\r\n');
    while ((await portsOfQemu()) === before) await system.turn();
    const closed = once(socket, 'close');
    await fleet.restartAgent();
    await closed;
    while ((await portsOfQemu()) !== before) await system.turn();
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('Hello from web');
  });

  it('tell when a guest ends a connection without a word, as it does where nothing listens', async () => {
    const forwarding = berth('port-forward', 'web', '0:81');
    const complaint = once(forwarding.child.stderr ?? expect.unreachable(), 'data');
    const port = Number(/:(\d+) is port/.exec(await forwarding.until(/is port 81/))?.[1]);
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.0\r\n\r\n');
    expect(String(await complaint)).toBe(
      'berth: instance "web" closed its port 81 without sending data: does a program listen there?\n',
    );
    socket.destroy();
  });

  it('are not promised for what is not there', async () => {
    const { code, stdout, stderr } = await runBerth(['port-forward', 'nope', '0:80'], fleet.environment);
    expect(stderr).toContain('cannot forward ports of instance "nope"');
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  });

  it('reach ssh by standard input and output', async () => {
    const line = berth('port-forward', '--stdio', 'web', '80');
    line.type('GET / HTTP/1.0\r\n\r\n');
    expect(await line.until(/Hello from web/)).toContain('200 OK');
  });
});

describe('the screen', () => {
  it('is a picture', async () => {
    const path = join(directory, 'web.png');
    expect(await runBerth(['screenshot', 'web', '-o', path], fleet.environment)).toMatchObject({ code: 0 });
    const picture = await readFile(path);
    expect(picture.subarray(1, 4).toString()).toBe('PNG');
    expect(picture.readUInt32BE(16)).toBeGreaterThanOrEqual(640);
    const nowhere = join(directory, 'no', 'web.png');
    expect(await runBerth(['screenshot', 'web', '-o', nowhere], fleet.environment)).toMatchObject({
      code: 2,
      stderr: `berth: cannot write the picture to ${nowhere}: there is no such directory\n`,
    });
  });

  it('speaks RFB to a viewer', async () => {
    const viewing = berth('vnc', 'web');
    const port = Number(/vnc:\/\/127\.0\.0\.1:(\d+)/.exec(await viewing.until(/vnc:/))?.[1]);
    const socket = connect(port, '127.0.0.1');
    const [greeting] = await once(socket, 'data');
    socket.destroy();
    expect(String(greeting)).toMatch(/^RFB 003\.00\d\n$/);
  });
});

describe('commands', () => {
  it('are refused with advice where no guest agent answers', async () => {
    const { code, stderr } = await runBerth(['exec', '--by', 'host', 'web', '--', 'id'], fleet.environment);
    expect(stderr).toContain('install and start qemu-guest-agent in the guest');
    expect(code).toBe(5);
  });

  it('go by ssh then, which says itself what it misses', async () => {
    const { code, stderr } = await runBerth(['exec', '-i', 'nobody@web', '--', 'id'], fleet.environment);
    expect(stderr).toMatch(/the guest agent does not answer.*trying your own ssh[^]*(onnection|kex_exchange)/);
    expect(stderr).toContain('instance "web" closed its port 22 without sending data');
    expect(stderr).toContain('"berth console web" attaches to');
    expect(code).toBe(255);
  });
});

describe('who may go in', () => {
  const ticketFor = (way: string) =>
    fleet.client.json<{ ticket: string; protocols: string[] }>('/v1/instances/web/tickets', {
      method: 'POST',
      body: { way },
    });

  it('is nobody without a token, from a page without a ticket, or for a guest that is not there', async () => {
    const path = '/v1/instances/web/console';
    expect((await knock(path, { headers: {} })).refused).toEqual({ status: 401, code: 'Unauthenticated' });
    expect((await knock(path, { headers: { authorization: 'Bearer wrong' } })).refused?.status).toBe(401);
    const authorization = `Bearer ${fleet.environment.BERTH_TOKEN}`;
    expect((await knock(path, { headers: { authorization, origin: 'https://evil.example' } })).refused?.status).toBe(
      403,
    );
    expect((await knock('/v1/instances/nobody/console')).refused).toEqual({ status: 404, code: 'NotFound' });
    expect((await knock('/v1/instances/web/ports/99999')).refused?.status).toBe(400);
    expect((await knock('/v1/instances/web/console?offset=-1')).refused?.status).toBe(400);
    expect((await knock('/v1/instances/web/console?wrong=1')).refused?.status).toBe(400);
    expect((await knock(path, { protocols: [] })).refused?.status).toBe(400);
  });

  it('is the bearer of a ticket, once, for what it was made out for', async () => {
    const { protocols } = await ticketFor('vnc');
    const page = { headers: { origin: 'https://dashboard.example' }, protocols };
    expect((await knock('/v1/instances/web/console', page)).refused?.status).toBe(403);
    const { socket } = await knock('/v1/instances/web/vnc', page);
    const said = once(socket ?? expect.unreachable(), 'message');
    socket?.resume();
    const [greeting] = await said;
    expect(String(greeting)).toMatch(/^RFB/);
    expect(socket?.protocol).toBe('berth.v1');
    socket?.close();
    expect((await knock('/v1/instances/web/vnc', page)).refused).toEqual({ status: 401, code: 'Unauthenticated' });
    const forged = protocols.map((protocol) => protocol.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')));
    expect(
      (await knock('/v1/instances/web/vnc', { ...page, protocols: ['berth.v1', forged[1] ?? ''] })).refused?.status,
    ).toBe(401);
  });

  it('is shown out when the guest is removed', async () => {
    await fleet.client.create('instance', {
      metadata: { name: 'brief' },
      spec: { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 0 },
    });
    await fleet.until('brief', ({ status }) => status.guest?.state === 'running');
    const open = await Promise.all(['console', 'vnc', 'ports/80'].map((way) => knock(`/v1/instances/brief/${way}`)));
    const ended = open.map(({ socket }) => once(socket ?? expect.unreachable(), 'close'));
    for (const { socket } of open) socket?.resume();
    await fleet.client.delete('instance', 'brief');
    await Promise.all(ended);
    await fleet.gone('brief');
  });
});
