import { describe, expect, it } from 'vitest';
import { tarOf } from '../container/test-tar.ts';
import { programOn } from './run-disk.ts';

const disk = (files: Readonly<Record<string, string>>): Buffer =>
  tarOf(Object.entries(files).map(([path, text]) => ({ path, data: Buffer.from(text) })));

describe('the program on a run disk', () => {
  it.each([
    ['its script', { 'runner.sh': 'x', script: 'echo a', 'work/.solstice/job.sh': 'echo b' }, 'echo a'],
    ['the default file of the work directory', { settings: '', 'work/.solstice/job.sh': 'echo b' }, 'echo b'],
    [
      'the file that the settings name',
      { settings: "a=1\nprogram='ci/run.sh'\n", 'work/ci/run.sh': 'echo c' },
      'echo c',
    ],
    ['the file that the settings name bare', { settings: 'program=run.sh\n', 'work/run.sh': 'echo d' }, 'echo d'],
    ['none', { settings: 'program=run.sh\n', 'work/other.sh': 'echo d' }, undefined],
  ])('is %s', (_, files, expected) => {
    expect(programOn(disk(files))).toBe(expected);
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['no archive', Buffer.alloc(4096, 'a')],
    ['one that is cut off', disk({ script: 'echo a' }).subarray(0, 100)],
  ])('is none on a disk with %s', (_, bytes) => {
    expect(programOn(bytes)).toBeUndefined();
  });
});
