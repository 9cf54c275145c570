import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunSpec } from '../../../api/resources/run.ts';
import { runDiskEntries } from '../guest/run-disk.ts';
import { createHostRunFiles } from './host-run-files.ts';
import { createMemoryRunFiles, readMemoryDisk, type RunMemory } from './memory-run-files.ts';
import { recordBytesMax, type RunFiles } from './run-files.ts';

const id = `inst_${'0'.repeat(25)}1`;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-run-files-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const bytes = (text: string): Buffer => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();

describe.each<[string, () => RunFiles]>([
  ['a directory', () => createHostRunFiles({ directory: join(directory, 'runs') })],
  ['memory', () => createMemoryRunFiles()],
])('files of runs in %s', (_, make) => {
  it('keep what was written, at its place', async () => {
    const files = make();
    expect(await files.list()).toEqual([]);
    const folder = await files.open(id);
    await folder.write('log', 0, bytes('hello world'));
    await folder.write('log', 6, bytes('there'));
    await folder.truncate('log', 9);
    expect(await folder.size('log')).toBe(9);
    expect(textOf(await folder.read('log', 6, 100))).toBe('the');
    expect(textOf(await folder.read('artifacts', 0, 100))).toBe('');
    await folder.writeRecord(1, bytes('second'));
    const [first, second] = await folder.readRecords();
    expect([textOf(first).replaceAll('\0', ''), textOf(second)]).toEqual(['', 'second']);
    await folder.writeRecord(0, bytes('f'.repeat(recordBytesMax)));
    expect(textOf((await folder.readRecords())[1])).toBe('second');
    await folder.close();
    expect(await files.list()).toEqual([id]);
    const again = await files.open(id);
    expect(textOf(await again.read('log', 0, 100))).toBe('hello the');
    await again.close();
    await files.remove(id);
    await files.remove(id);
    expect(await files.list()).toEqual([]);
  });
});

const texts = { A: "it's \\ $HOME `x`", B: 'two\nlines', 'c.d': 'dots' };
const run: RunSpec = {
  script: 'echo "$A|$B|$SOLSTICE_JOB_FILE"',
  repo: { url: 'https://git.example.com/a', commit: 'a'.repeat(40), path: "it's here/job.sh" },
  env: texts,
  artifacts: ['build/*.tar', 'a b'],
  timeLimitMs: 1000,
  graceMs: 0,
  holdOnFailure: false,
};

describe('the disk of a run', () => {
  it('unpacks to the program and the files of the commit', async () => {
    const files = createHostRunFiles({ directory: join(directory, 'runs') });
    const disk = await files.makeDisk(id, runDiskEntries({ ...run, env: texts }), async (path) => {
      await mkdir(join(directory, 'work'));
      await writeFile(join(directory, 'work', 'README'), 'read me\n');
      execFileSync('tar', ['cf', path, '-C', directory, 'work']);
    });
    expect((await stat(disk)).size % 10_240).toBe(0);
    const at = join(directory, 'guest');
    await mkdir(at);
    execFileSync('tar', ['xf', disk, '-C', at]);
    expect((await readdir(at)).sort()).toEqual([
      'artifacts',
      'berth-run',
      'env',
      'runner.sh',
      'script',
      'settings',
      'work',
    ]);
    expect(await readFile(join(at, 'artifacts'), 'utf8')).toBe('build/*.tar\na b\n');
    // A shell does not hand on a name with a dot; a program that is executed has it.
    const program = '. ./env; . ./settings; echo "$program"; sh ./script; exec env "$@" printenv c.d';
    const said = execFileSync('sh', ['-c', program], { cwd: at }).toString();
    expect(said).toBe(`it's here/job.sh\nit's \\ $HOME \`x\`|two\nlines|it's here/job.sh\ndots\n`);
    await files.removeDisk(id);
    expect(await readdir(join(directory, 'runs', id))).toEqual([]);
  });

  it('is not there when the commit could not be fetched', async () => {
    const files = createHostRunFiles({ directory: join(directory, 'runs') });
    const failing = files.makeDisk(id, runDiskEntries({ ...run, env: texts }), async (path) => {
      await writeFile(path, 'half');
      throw new Error('no such commit');
    });
    await expect(failing).rejects.toThrow('no such commit');
    expect(await readdir(join(directory, 'runs', id))).toEqual([]);
  });

  it('is what a pretended guest reads', async () => {
    const memory: RunMemory = new Map();
    const path = await createMemoryRunFiles(memory).makeDisk(id, bytes('disk'));
    expect(textOf(readMemoryDisk(memory, path))).toBe('disk');
    expect(() => readMemoryDisk(memory, '/memory/runs/other/disk.raw')).toThrow('is not there');
  });
});
