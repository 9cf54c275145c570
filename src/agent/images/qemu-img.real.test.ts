import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system, systemClock } from '../../base/system.ts';
import { identify, isAlive } from '../host/processes.ts';
import { checkImage } from './unpack/image-gate.ts';
import { flattenArguments, overlayArguments, runQemuImg } from './qemu-img.ts';
import { qcow2File } from './test-qcow2.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-jail-'));
});
afterEach(() => rm(directory, { recursive: true }));

const jailed = (program: string, words: readonly string[], more: Partial<Parameters<typeof runQemuImg>[1]> = {}) =>
  runQemuImg(systemClock, { program, arguments: words, timeoutMs: 60_000, workingDirectory: directory, ...more });

describe('the jail of qemu-img', () => {
  it('ends what burns the processor', async () => {
    const limits = { cpuSeconds: 1, memoryBytes: 1024 ** 3 };
    expect(await jailed('sh', ['-c', 'while :; do :; done'], { limits })).toMatchObject({
      ok: false,
      reason: 'failed',
      output: expect.stringContaining('more than 1 s of processor time'),
    });
  });

  it('ends what eats memory', async () => {
    const limits = { cpuSeconds: 30, memoryBytes: 64 * 1024 ** 2 };
    expect(await jailed('tail', ['/dev/zero'], { limits })).toMatchObject({
      ok: false,
      reason: 'failed',
      output: expect.stringContaining('bytes of memory'),
    });
  });

  it('has no network but its own', async ({ skip }) => {
    try {
      execFileSync('unshare', ['--net', 'true'], { stdio: 'ignore' });
    } catch {
      skip('there are no network namespaces to be had here');
    }
    const { output } = await jailed('cat', ['/proc/net/dev']);
    expect(
      output
        .split('\n')
        .slice(2)
        .map((line) => line.trim().split(':')[0]),
    ).toEqual(['lo']);
  });

  it('gives many threads room: small stacks, and one arena of malloc for all', async () => {
    const { output } = await jailed('sh', ['-c', 'echo "$(ulimit -s) $MALLOC_ARENA_MAX"']);
    expect(output).toBe('2048 1');
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', 'disk', '64M'], { cwd: directory });
    execFileSync('qemu-io', ['-f', 'qcow2', '-c', 'write -P 7 0 64M', 'disk'], { cwd: directory });
    // A quarter of what it has: more than all of its threads' stacks.
    const limits = { cpuSeconds: 60, memoryBytes: 256 * 1024 ** 2 };
    expect(await jailed('qemu-img', flattenArguments({ from: 'disk', to: 'flat' }), { limits })).toMatchObject({
      ok: true,
    });
  });

  it('has nothing of the environment but a path', async () => {
    const { output } = await jailed('env', []);
    expect(
      output
        .split('\n')
        .map((line) => line.split('=')[0])
        .sort(),
    ).toEqual(['LC_ALL', 'MALLOC_ARENA_MAX', 'PATH']);
  });

  it('tells a program that is not there from one that fails', async () => {
    expect(await jailed('/nowhere/qemu-img', [])).toMatchObject({ reason: 'missing' });
    expect(await jailed('false', [])).toMatchObject({ reason: 'failed', exitCode: 1 });
  });

  it('is left at once when it is given up', async () => {
    const stop = new AbortController();
    const run = jailed('sh', ['-c', 'echo begun > begun; exec sleep 100'], { signal: stop.signal });
    while ((await readFile(join(directory, 'begun'), 'utf8').catch(() => '')) === '')
      await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    expect(await run).toMatchObject({ reason: 'aborted' });
  });

  it('ends with an agent that is killed, and with it the locks that it had', async () => {
    const program = fileURLToPath(new URL('./test-agent.ts', import.meta.url));
    const words = [program, directory, 'sh', '-c', 'echo $$ > pid; exec sleep 600'];
    const agent = spawn(system.nodePath(), words, { stdio: 'inherit' });
    const ended = once(agent, 'exit');
    let pid = '';
    while (!pid.endsWith('\n')) pid = await readFile(join(directory, 'pid'), 'utf8').catch(() => '');
    const running = await identify(Number(pid));
    agent.kill('SIGKILL');
    await ended;
    while (running !== null && (await isAlive(running))) await system.turn();
    expect(running).not.toBeNull();
  });

  it('has room enough for the largest disk and for compressing', async () => {
    await writeFile(join(directory, 'image'), qcow2File());
    const image = { path: join(directory, 'image'), format: 'qcow2' as const };
    const made = await jailed('qemu-img', overlayArguments({ image, fileName: 'disk', sizeBytes: 16 * 1024 ** 4 }));
    expect(made).toEqual({ ok: true, output: '' });
    expect(
      await jailed('qemu-img', overlayArguments({ image, fileName: 'small', sizeBytes: 1024 ** 2 })),
    ).toMatchObject({
      ok: true,
    });
    expect(await jailed('qemu-img', flattenArguments({ from: 'small', to: 'flat' }))).toMatchObject({ ok: true });
  });
});

describe('a guest that writes the header of another disk into its own', () => {
  it('has it stay what it wrote, whatever is done with the disk on the host', async () => {
    const secret = join(directory, 'secret');
    await writeFile(secret, 'the secret of the host'.padEnd(1024 * 1024, '.'));
    // A raw image, and a guest that writes a qcow2 with a backing file over the beginning of its disk.
    await writeFile(join(directory, 'image.raw'), Buffer.alloc(1024 * 1024, 'raw '));
    const header = qcow2File({ backingFileOffset: 512n, backingFileSize: secret.length, l1Entry: 0n });
    header.write(secret, 512);
    await writeFile(join(directory, 'header'), header);
    const image = { path: join(directory, 'image.raw'), format: 'raw' as const };
    await jailed('qemu-img', overlayArguments({ image, fileName: 'disk', sizeBytes: 1024 ** 2 }));
    execFileSync('qemu-io', ['-f', 'qcow2', '-c', `write -s header 0 ${header.length}`, 'disk'], { cwd: directory });
    const flattened = await jailed('qemu-img', flattenArguments({ from: 'disk', to: 'flat' }));
    expect(flattened.ok ? '' : flattened.output).toBe('');
    execFileSync('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', 'flat', 'seen'], { cwd: directory });
    const seen = await readFile(join(directory, 'seen'));
    expect(seen.subarray(0, header.length)).toEqual(header);
    expect(seen.includes('the secret of the host')).toBe(false);
    // And as a new image, what it wrote is refused: raw, that begins like a qcow2.
    await writeFile(join(directory, 'as-raw'), seen);
    const { open } = await import('node:fs/promises');
    const file = await open(join(directory, 'as-raw'));
    expect(await checkImage(file, 'raw', { virtualBytesMax: 1e12 })).toMatchObject({ ok: false });
    await file.close();
  });
});

describe('every command line of qemu-img', () => {
  const root = join(import.meta.dirname, '../../..');
  const files = ['src', 'test', 'bench', 'scripts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(ts|mjs)$/.test(path))
      .map((path) => join(folder, path)),
  );
  const verbs = 'create|convert|info|resize|rebase|snapshot|check|map|commit|measure|compare|amend|dd';
  const lines = files.flatMap((path) => {
    const source = readFileSync(join(root, path), 'utf8');
    if (!/qemu-img|qemuImg/i.test(source)) return [];
    const arrays = [
      ...source.matchAll(new RegExp(`(?<!\\b(?:zfs|killAgentWhile)\\([^[\\n]*)\\[\\s*'(${verbs})',[^\\]]*\\]`, 'g')),
    ];
    const texts = [...source.matchAll(new RegExp(`qemu-img (${verbs}) [^'"\`\\n]+`, 'g'))];
    return [...arrays, ...texts].map(([text, verb]) => ({ path, verb, text }));
  });

  it('is found', () => {
    expect(lines.length).toBeGreaterThan(15);
    expect(lines.map(({ path }) => path)).toContain('src/agent/images/qemu-img.ts');
  });

  it.each(lines.map(({ path, verb, text }) => [`${path}: ${text.replaceAll(/\s+/g, ' ')}`, verb, text] as const))(
    'says its formats: %s',
    (_, verb, text) => {
      const has = (word: string): boolean => new RegExp(`(^|[\\s'])${word}([\\s']|$)`).test(text);
      // This one alone takes it among the options of the image; and `json:` names a driver for each file.
      if (verb === 'snapshot') expect(text).toContain('--image-opts');
      else if (text.includes('`json:')) expect(text).not.toContain('-f');
      else expect(has('-f'), '-f').toBe(true);
      if (verb === 'convert') expect(has('-O'), '-O').toBe(true);
      if (has('-b')) expect(has('-F'), '-F').toBe(true);
    },
  );
});
