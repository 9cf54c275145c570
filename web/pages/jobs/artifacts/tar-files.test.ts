import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tarFiles } from './tar-files.ts';

let directory: string;
const long = `${'deep/'.repeat(30)}${'n'.repeat(120)}.txt`;
const contents: Readonly<Record<string, string>> = {
  'a.txt': 'alpha',
  'empty.log': '',
  'sub/\u00fcber.bin': 'x'.repeat(1_300),
  [long]: 'far',
};

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'berth-tar-'));
  for (const [name, text] of Object.entries(contents)) {
    mkdirSync(join(directory, 'files', name, '..'), { recursive: true });
    writeFileSync(join(directory, 'files', name), text);
  }
});
afterAll(() => rmSync(directory, { recursive: true }));

const packed = (format: string): Buffer =>
  execFileSync('tar', [`--format=${format}`, '-C', join(directory, 'files'), '-cf', '-', ...Object.keys(contents)]);

describe('the files of an archive', () => {
  it.each(['gnu', 'posix'])('are found with their names and contents: %s', (format) => {
    const files = tarFiles(packed(format)).map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]);
    expect(Object.fromEntries(files)).toEqual(contents);
  });

  it('have the prefix of ustar before their names', () => {
    const name = `${'d'.repeat(90)}/${'e'.repeat(90)}.txt`;
    mkdirSync(join(directory, 'ustar', name, '..'), { recursive: true });
    writeFileSync(join(directory, 'ustar', name), 'u');
    const archive = execFileSync('tar', ['--format=ustar', '-C', join(directory, 'ustar'), '-cf', '-', name]);
    expect(tarFiles(archive).map((file) => file.name)).toEqual([name]);
  });

  it('are not made up from what is no archive, or half of one', () => {
    expect(() => tarFiles(packed('gnu').subarray(0, 700))).not.toThrow(); // whole so far
    expect(() => tarFiles(Buffer.alloc(512, 'z'))).toThrow('no tar archive');
    const big = packed('gnu');
    const at = big.indexOf('x'.repeat(1_300));
    expect(() => tarFiles(big.subarray(0, at + 600))).toThrow('not whole');
  });
});
