import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { busyboxForWget, tinyWget } from './tiny-guest.ts';

// The whole image boots in build.test.ts and nat-guests.test.ts.
describe('wget of the tiny image', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-wget-'));
    await writeFile(join(directory, 'wget'), tinyWget, { mode: 0o755 });
    for (const name of ['busybox', 'timeout'])
      await writeFile(join(directory, name), `#!/bin/sh\nprintf '[%s]' ${name} "$@"\n`, { mode: 0o755 });
  });
  afterAll(() => rm(directory, { recursive: true }));

  it.each([
    ['http://a/', '[busybox][wgeT][http://a/]'],
    ['-qO- http://a/', '[busybox][wgeT][-qO-][http://a/]'],
    ['-T 5 -qO- http://a/', '[timeout][5][busybox][wgeT][-qO-][http://a/]'],
    ['-qT 5 -O - http://a/', '[timeout][5][busybox][wgeT][-q][-O][-][http://a/]'],
    ['-T5 http://a/ -c', '[timeout][5][busybox][wgeT][http://a/][-c]'],
    ['-qT5 http://a/', '[timeout][5][busybox][wgeT][-q][http://a/]'],
    ['--timeout=7 http://a/', '[timeout][7][busybox][wgeT][http://a/]'],
    ['--timeout 7 http://a/', '[timeout][7][busybox][wgeT][http://a/]'],
    ['-T 0 http://a/', '[busybox][wgeT][http://a/]'],
    ['-qO -T --header -T -U -T http://a/', '[busybox][wgeT][-qO][-T][--header][-T][-U][-T][http://a/]'],
  ])('%s', (words, expected) => {
    const { stdout } = spawnSync(join(directory, 'wget'), words.split(' '), {
      env: { PATH: `${directory}:/usr/bin:/bin` },
      encoding: 'utf8',
    });
    expect(stdout).toBe(expected);
  });

  it('keeps words with spaces whole', () => {
    const { stdout } = spawnSync(join(directory, 'wget'), ['--header', 'A: b c', '-T', '5', 'http://a/'], {
      env: { PATH: `${directory}:/usr/bin:/bin` },
      encoding: 'utf8',
    });
    expect(stdout).toBe('[timeout][5][busybox][wgeT][--header][A: b c][http://a/]');
  });
});

it('busybox gives up the name of its wget, where that is its only one', () => {
  const names = (wget: string) => Buffer.from(`code\0wc\0${wget}\0which\0`, 'latin1');
  expect(busyboxForWget(names('wget'))).toEqual(names('wgeT'));
  expect(busyboxForWget(names('less'))).toBeUndefined();
  expect(busyboxForWget(Buffer.concat([names('wget'), names('wget')]))).toBeUndefined();
});
