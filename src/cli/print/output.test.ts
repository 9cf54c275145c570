import { describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testHost, testInstance } from '../testing.ts';

const waits = '0 of 1 host: 1 InsufficientMemory';
const big = testInstance('big', {
  status: {
    phase: 'Pending',
    host: undefined,
    conditions: [{ type: 'Scheduled', status: 'False', reason: 'Unschedulable', message: waits, sinceMs: 0 }],
  },
});
const web = testInstance('web', {
  status: {
    host: 'builder-7',
    guest: {
      ready: true,
      address: '192.168.122.17',
      ports: [{ hostAddress: '127.0.0.1', hostPort: 8099, guestPort: 80, protocol: 'tcp' }],
    },
  },
});
const instances: Handler = () => page([big, web]);
const terminal = { columns: 80, rows: 24 };
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

describe('a table on a terminal', () => {
  it('of 80 columns says why an instance waits', async () => {
    const { stdout, stderr } = await runBerth(['ps'], { handler: instances, terminal });
    expect(stdout).toContain(waits.slice(0, 29));
    expect(Math.max(...lines(stdout).map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines(stdout)[0]).toMatch(/^NAME .*PHASE .*REASON$/);
    expect(stderr).toMatch(/^no room for ([A-Z]+, )*IMAGE(, [A-Z]+)*; -o wide shows all\n$/);
  });

  it('leaves out what is the same everywhere before it cuts, without a word', async () => {
    const { stdout, stderr } = await runBerth(['ps'], {
      handler: () => page([big]),
      terminal: { columns: 80, rows: 24 },
    });
    expect(lines(stdout)[0]?.split(/ +/)).toEqual(['NAME', 'PHASE', 'READY', 'HOST', 'IMAGE', 'AGE', 'REASON']);
    expect(stdout).toContain(waits);
    expect(stderr).toBe('');
  });

  it('has all of it with -o wide, and in a pipe', async () => {
    const wide = await runBerth(['ps', '-o', 'wide'], { handler: instances, terminal });
    const piped = await runBerth(['ps'], { handler: instances });
    expect(wide).toMatchObject({ stdout: piped.stdout, stderr: '' });
    expect(piped.stdout).toContain('127.0.0.1:8099->80');
    expect(piped.stdout).toContain('RESTARTS');
    expect(
      (await runBerth(['get', 'instance', 'web', '-o', 'wide'], { handler: () => ({ json: web }), terminal })).stdout,
    ).toContain('192.168.122.17');
  });

  describe('and a reason that is very long', () => {
    const long = `the emulator said: ${'0123456789'.repeat(50)} the end`;
    const failed = testInstance('web', {
      status: {
        phase: 'Failed',
        conditions: [{ type: 'Running', status: 'False', reason: 'GuestFailed', message: long, sinceMs: 0 }],
      },
    });
    const full = `GuestFailed: ${long}`;
    const ps = (words: string, settings = {}) =>
      runBerth(['ps', ...words.split(' ').filter(Boolean)], { handler: () => page([failed]), ...settings });

    it.each([80, 132])('is cut to the width of a terminal of %i columns', async (columns) => {
      const [head, row] = lines((await ps('', { terminal: { columns, rows: 24 } })).stdout);
      expect(row).toMatch(/ GuestFailed: .*…$/);
      expect(row).toHaveLength(columns);
      expect(head).toMatch(/REASON$/);
    });

    it.each([
      ['in a pipe', {}],
      ['on a terminal of unknown width', { terminal: { columns: 0, rows: 0 } }],
    ])('is cut to 120 characters %s', async (_, settings) => {
      const { stdout } = await ps('', settings);
      expect(lines(stdout)[1]).toMatch(new RegExp(`${full.slice(0, 119)}…$`));
    });

    it.each(['--wide', '-o wide', '-o json', '-o yaml'])('is whole with %s', async (words) => {
      expect((await ps(words)).stdout).toContain(long);
      expect((await ps(words, { terminal })).stdout).toContain(long);
    });

    it('is whole in `berth show`', async () => {
      const { stdout } = await runBerth(['show', 'web'], { handler: () => ({ json: failed }), terminal });
      expect(stdout).toContain(full);
    });
  });

  it('shows how much hosts hold, and since when they are there', async () => {
    const handler: Handler = ({ path }) =>
      path === '/v1/usage'
        ? page([
            {
              host: 'h1',
              consumers: 3,
              classes: {
                VCPU: { used: 1, capacity: 2 },
                MEMORY_MB: { used: 1024, capacity: 22_771 },
                DISK_GB: { used: 1, capacity: 251 },
              },
            },
          ])
        : page([testHost('h1')]);
    const { stdout } = await runBerth(['host', 'ls'], { handler, terminal });
    expect(lines(stdout)[0]).toMatch(/INSTANCES +AGE$/);
    expect(lines(stdout)[1]).toContain('1 GiB/22.2 GiB');
  });

  it('says what each driver makes, and which hosts have it', async () => {
    const { stdout } = await runBerth(['driver', 'ls'], { handler: () => page([testHost('h1')]), terminal });
    expect(lines(stdout)[0]).toMatch(/^NAME +GUESTS .*HOSTS$/);
    expect(lines(stdout)[1]).toMatch(/^qemu +virtual m\w*… .*h1 \(tcg\)$/);
  });

  it.each([
    ['ps', instances],
    ['driver ls', () => page([testHost('h1')])],
  ])('that does not know its size has all of it: %s', async (words, handler) => {
    const unknown = await runBerth(words.split(' '), { handler, terminal: { columns: 0, rows: 0 } });
    expect(unknown.stdout).toBe((await runBerth(words.split(' '), { handler })).stdout);
  });

  it('that does not know its size is drawn anew all the same', async () => {
    const interruption = new AbortController();
    const handler: Handler = ({ query }) =>
      query['watch'] ? { lines: [{ type: 'put', revision: 8, resource: big }] } : page([big, web]);
    const { stdout } = await runBerth(['ps', '-w'], {
      handler,
      interruption: interruption.signal,
      terminal: { columns: 0, rows: 0 },
      onOutput: (text) => text.includes('\u001b[3A') && interruption.abort(),
    });
    expect(stdout).toContain(waits);
    expect(stdout).toContain('127.0.0.1:8099->80');
  });
});
