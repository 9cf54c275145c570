import { describe, expect, it } from 'vitest';
import { fileFailure, writeFailure } from './file-failure.ts';
import { runBerth } from '../testing.ts';

describe('a file that is refused', () => {
  it.each([
    ['/nonexistent/x', 'there is no such file'],
    ['/', 'it is not a file'],
  ])('as an image (%s) is told in words', async (path, why) => {
    const { stderr, exitCode, requests } = await runBerth(['image', 'upload', path, 'x']);
    expect({ stderr, exitCode, requests }).toEqual({
      stderr: `berth: cannot read ${path}: ${why}\n`,
      exitCode: 2,
      requests: [],
    });
  });

  it('is told of by its directory when it was to be made, and other errors stay what they are', () => {
    const missing = Object.assign(new Error('ENOENT: no such file or directory'), { code: 'ENOENT' });
    expect(writeFailure(missing, 'write x')).toMatchObject({ message: 'cannot write x: there is no such directory' });
    expect(fileFailure(missing, 'read x')).toMatchObject({ message: 'cannot read x: there is no such file' });
    const other = new Error('no');
    expect([writeFailure(other, 'write x'), fileFailure(other, 'read x')]).toEqual([other, other]);
  });
});
