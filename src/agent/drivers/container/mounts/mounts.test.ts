import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assertMountable, mountsOfLabel, mountsText } from './mounts.ts';

let root: string;
beforeEach(async () => {
  root = join(await realpath(await mkdtemp(join(tmpdir(), 'berth-mounts-'))), 'srv');
  await mkdir(join(root, 'data', 'deep'), { recursive: true });
  await mkdir(join(root, 'open', 'below'), { recursive: true });
  await chmod(join(root, 'open'), 0o777);
  await mkdir(join(root, 'sticky', 'below'), { recursive: true });
  await chmod(join(root, 'sticky'), 0o1777);
  await writeFile(join(root, 'file'), 'x');
  await symlink(join(root, 'data'), join(root, 'link'));
  await symlink('/etc', join(root, 'data', 'out'));
});
afterEach(() => rm(join(root, '..'), { recursive: true, force: true }));

const container = (hostPath: string, readOnly = false) => ({
  ...{ name: 'main', imageName: 'shop', env: {} },
  mounts: [{ hostPath, path: '/data', readOnly }],
});

async function answerTo(
  path: string,
  others: Parameters<typeof assertMountable>[1] = [],
  readOnly = false,
): Promise<string> {
  const hostPath = join(root, path);
  return assertMountable([container(hostPath, readOnly)], others, root).then(
    () => 'accepted',
    (error: unknown) => String(error).replaceAll(root, ''),
  );
}

describe('a folder of the host', () => {
  it.each([
    ['data', /^accepted$/],
    ['data/deep', /^accepted$/],
    ['file', /^accepted$/],
    ['sticky/below', /^accepted$/],
    ['link', /main" cannot have \/link of the host: \/link is a symbolic link/],
    ['link/deep', /\/link is a symbolic link/],
    ['data/out', /\/data\/out is a symbolic link/],
    ['data/out/ssh', /\/data\/out is a symbolic link/],
    ['open/below', /others can replace \/open\/below, because they can write to \/open/],
    ['missing', /\/missing does not exist there/],
    ['file/below', /\/file is no folder/],
  ])('%s', async (path, answer) => {
    expect(await answerTo(path)).toMatch(answer);
  });

  it('is refused where another guest can replace what is in it, and the other way round', async () => {
    const held = (path: string, writable: boolean) => [{ hostPath: join(root, path), writable }];
    expect(await answerTo('data/deep', held('data', true))).toMatch(/another guest can write to \/data/);
    expect(await answerTo('data/deep', held('data', false))).toBe('accepted');
    expect(await answerTo('data', held('data', true))).toBe('accepted');
    expect(await answerTo('data', held('data/deep', false))).toMatch(/to write: another guest has \/data\/deep/);
    expect(await answerTo('data', held('data/deep', true), true)).toBe('accepted');
    expect(await answerTo('data', held('da', true))).toBe('accepted');
  });
});

it('is known again by the label of its container', () => {
  const { mounts } = container('/srv/data', true);
  expect(mountsOfLabel(mountsText([...mounts, { hostPath: '/srv/b', path: '/b' }]))).toEqual([
    { hostPath: '/srv/data', writable: false },
    { hostPath: '/srv/b', writable: true },
  ]);
  expect(mountsOfLabel('{"not":"ours"}')).toEqual([]);
  expect(mountsOfLabel('nothing')).toEqual([]);
});
