import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { closedFolder } from '../../host/guest-user.ts';
import { adviceOn, cutsConsoles, runsAsRoot } from './host-advice.ts';

describe('consoles are cut', () => {
  it.each([
    ['nothing is set: the log daemon is used, and cuts at 2 MiB', { qemu: '', log: '' }, true],
    ['the settings are comments only', { qemu: '#stdio_handler = "file"\n', log: '#max_size = 0\n' }, true],
    ['the log daemon has another limit', { qemu: 'stdio_handler = "logd"', log: 'max_size = 4096' }, true],
    ['the log daemon has no limit', { qemu: '', log: ' max_size = 0 # none\nmax_backups = 3' }, false],
    ['the log daemon is not used', { qemu: 'user = "root"\nstdio_handler = "file"\n', log: '' }, false],
    ['the last of two settings holds', { qemu: '', log: 'max_size = 0\nmax_size = 7' }, true],
  ])('%s', (_, configuration, cuts) => {
    expect(cutsConsoles(configuration)).toBe(cuts);
  });
});

it.each([
  ['', false],
  ['#user = "root"', false],
  ['user = "libvirt-qemu"', false],
  ['user = "root"', true],
  ['user = "+0"', true],
])('with "%s" QEMU runs as root: %s', (qemu, root) => {
  expect(runsAsRoot(qemu)).toBe(root);
});

describe('on a host', () => {
  let base: string;
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'berth-advice-'));
    await chmod(base, 0o711);
    await mkdir(join(base, 'agent', 'libvirt'), { recursive: true });
  });
  afterEach(() => rm(base, { recursive: true }));

  it('a folder on the way that others cannot pass is named, the first of them', async () => {
    const root = join(base, 'agent', 'libvirt');
    expect(await closedFolder(root)).toBeUndefined();
    await chmod(root, 0o700);
    expect(await closedFolder(root)).toBe(root);
    await chmod(join(base, 'agent'), 0o750);
    expect(await closedFolder(root)).toBe(join(base, 'agent'));
  });

  it('there is advice only where something is to be done', async () => {
    const folders = { configuration: base, root: join(base, 'agent', 'libvirt') };
    await chmod(folders.root, 0o700);
    expect(await adviceOn(folders)).toEqual([
      expect.stringContaining(`max_size = 0 in ${base}/virtlogd.conf`),
      expect.stringContaining(`chmod o+x ${folders.root}`),
    ]);
    await writeFile(join(base, 'virtlogd.conf'), 'max_size = 0\n');
    await writeFile(join(base, 'qemu.conf'), 'user = "root"\n');
    expect(await adviceOn(folders)).toEqual([]);
  });
});
