import { mkdir, mkdtemp, readFile, rmdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { systemClock } from '../../../base/system.ts';
import { ConsoleRecorder } from './console.ts';

describe('the recorder of a console', () => {
  let directory: string;
  let logPath: string;
  let socketPath: string;
  let recorder: ConsoleRecorder;
  let servers: Server[];
  let warned: PromiseWithResolvers<void>;

  beforeEach(async () => {
    directory = await realpath(await mkdtemp(join(tmpdir(), 'bz-')));
    logPath = join(directory, 'console.log');
    socketPath = join(directory, 'com1');
    servers = [];
    warned = Promise.withResolvers();
    const log = { ...silentLogger, warn: () => warned.resolve() };
    recorder = new ConsoleRecorder({ socketPath, logPath, clock: systemClock, prng: seededPrng(1), log });
  });
  afterEach(async () => {
    recorder.abandon();
    for (const server of servers) server.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** A hypervisor begins to listen; answers its side of the line once somebody has come. */
  const lineOf = async (): Promise<Socket> => {
    const server = createServer();
    servers.push(server);
    const caller = new Promise<Socket>((resolve) => server.once('connection', resolve));
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    return caller;
  };
  const say = (line: Socket, text: string): Promise<void> =>
    new Promise((resolve) => line.write(text, () => resolve()));

  it('comes as soon as there is a console, and writes down what it says to the last word', async () => {
    const line = await lineOf();
    await say(line, 'first ');
    await say(line, 'last');
    line.end();
    await recorder.finish();
    expect(await readFile(logPath, 'utf8')).toBe('first last');
    expect(recorder.heardBytes()).toBe(10);
  });

  it('comes back when the line breaks, and goes on with the same log', async () => {
    const line = await lineOf();
    await say(line, 'one ');
    line.end();
    servers.shift()?.close();
    const other = await lineOf();
    await say(other, 'two');
    other.end();
    await recorder.finish();
    expect(await readFile(logPath, 'utf8')).toBe('one two');
  });

  it('does not wait for ever for a line that stays open', async () => {
    const line = await lineOf();
    await say(line, 'and then');
    await recorder.finish(); // the hypervisor hangs, and never hangs up
    expect(await readFile(logPath, 'utf8')).toBe('and then');
  });

  it('stays on the line when the log cannot be written, and goes on when it can', async () => {
    await mkdir(logPath);
    const line = await lineOf();
    await say(line, 'lost');
    await warned.promise;
    await rmdir(logPath);
    await say(line, 'kept');
    line.end();
    await recorder.finish();
    expect(await readFile(logPath, 'utf8')).toBe('kept');
    expect(servers).toHaveLength(1);
  });

  it('drops the start of the log and keeps every other byte where it is', async () => {
    await writeFile(logPath, `${'x'.repeat(100_000)}tail`);
    await recorder.dropStart(98_304);
    const log = await readFile(logPath, 'utf8');
    expect(log.length).toBe(100_004);
    expect(log.slice(98_304)).toBe(`${'x'.repeat(1696)}tail`);
    expect((await stat(logPath)).blocks * 512).toBeLessThan(98_304); // there is a hole
    const line = await lineOf();
    await say(line, ' more');
    line.end();
    await recorder.finish();
    expect((await readFile(logPath, 'utf8')).slice(100_000)).toBe('tail more');
  });

  it('leaves the log alone when its start cannot be dropped', async () => {
    await expect(recorder.dropStart(10)).rejects.toThrow('ENOENT');
    const line = await lineOf();
    await say(line, 'still here');
    line.end();
    await recorder.finish();
    expect(await readFile(logPath, 'utf8')).toBe('still here');
  });
});
