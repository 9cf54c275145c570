import { describe, expect, it, vi } from 'vitest';
import { lists } from './test-fleet.ts';
import { runBerth } from './testing.ts';

describe('berth complete', () => {
  const offered = async (...words: string[]): Promise<string[]> =>
    (await completions(words))
      .split('\n')
      .flatMap((line) => (line === '' || line.startsWith(':') ? [] : [line.split('\t')[0] ?? '']));

  async function completions(words: readonly string[]): Promise<string> {
    const said: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line)); // the library's only way to speak
    await runBerth(['complete', '--', ...words], { handler: lists });
    log.mockRestore();
    return said.join('\n');
  }

  it('knows the verbs', async () => expect(await offered('')).toEqual(expect.arrayContaining(['run', 'ps', 'host'])));
  it('knows the verbs of a noun', async () =>
    expect(await offered('host', '')).toEqual(expect.arrayContaining(['ls', 'pause'])));
  it('asks the server for instances', async () => expect(await offered('logs', '')).toEqual(['web', 'big']));
  it('asks the server for hosts', async () => expect(await offered('host', 'pause', '')).toEqual(['h1', 'h2']));
  it.each([
    ['instances, and leaves the rest of the word open', [''], 'web:\t\nbig:\t\n:2\n'],
    ['those that begin so', ['./file', 'w'], 'web:\t\n:2\n'],
    ['files, which are the shell’s, where no instance is meant', ['./f'], ':0\n'],
    ['files behind a flag that takes none', ['-r', './f'], ':0\n'],
  ])('offers %s, where files are copied', async (_, words, expected) =>
    expect((await runBerth(['complete', '--', 'cp', ...words], { handler: lists })).stdout).toBe(expected),
  );
  it('offers no instance as the value of a flag where files are copied', async () =>
    expect(await offered('cp', '--identity', 'w')).toEqual([]));
  it('asks the server for the images of a job, with their aliases', async () =>
    expect(await offered('job', 'run', '')).toEqual(await offered('run', '')));
  it('knows the drivers', async () =>
    expect(await offered('run', 'tiny', '--driver', '')).toEqual(expect.arrayContaining(['qemu', 'zones'])));
  it('knows the words that a description spells out', async () =>
    expect(await offered('run', 'tiny', '--restart', '')).toEqual(['never', 'on-failure', 'always']));
  it('knows the causes of retries', async () =>
    expect(await offered('job', 'run', '--retry-on', '')).toEqual(['infrastructure', 'failure']));
  it('knows the words that an option may be', async () =>
    expect(await offered('exec', 'web', '--by', '')).toEqual(['host', 'ssh']));
  it.each([
    [
      ['ps', '--w'],
      ['--watch', '--wide'],
    ],
    [['ssh', '--l'], ['--login']],
    [['exec', '--l'], ['--login']],
    [['image', 'add', '--default'], ['--default-user']],
  ])('knows the flags that begin so: %j', async (words, flags) => expect(await offered(...words)).toEqual(flags));
  it('knows the flags of a verb', async () =>
    expect(await offered('run', '--res')).toEqual([
      '--resource',
      '--restart',
      '--restart-delay',
      '--restart-delay-max',
      '--restart-limit',
      '--restart-disk',
    ]));
});
