// The units of packaging/systemd: systemd understands every line of them, and their programs and options exist.

import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unitOf } from '../../scripts/deb/deb-tree.ts';

const folder = join(import.meta.dirname, '../../packaging/systemd');
const units = readdirSync(folder);
let root: string;
beforeAll(() => {
  // A file system in which the recipe has been followed as far as units see it.
  root = mkdtempSync(join(tmpdir(), 'berth-units-'));
  for (const path of ['usr/local/bin', 'usr/bin', 'bin', 'etc/systemd/system'])
    mkdirSync(join(root, path), { recursive: true });
  for (const path of ['usr/local/bin/berth', 'usr/bin/berth', 'bin/kill'])
    writeFileSync(join(root, path), '', { mode: 0o755 });
  for (const name of ['sysinit', 'basic', 'shutdown', 'network-online', 'multi-user'])
    writeFileSync(join(root, `etc/systemd/system/${name}.target`), `[Unit]\nDescription=${name}\n`);
  for (const unit of units) copyFileSync(join(folder, unit), join(root, 'etc/systemd/system', unit));
});
afterAll(() => rmSync(root, { recursive: true }));

const verify = (unit: string) => {
  const words = ['verify', '--root', root, '--man=no', '--recursive-errors=one', unit];
  return spawnSync('systemd-analyze', words, { encoding: 'utf8' });
};

describe('the units for systemd', () => {
  it('are one for the server and one for the agent', () =>
    expect(units).toEqual(['berth-agent.service', 'berth-server.service']));

  it.each(units)('%s is understood by systemd', (unit) =>
    expect(verify(unit)).toMatchObject({ stderr: '', status: 0 }),
  );

  it.each(['server', 'agent'])('%s is understood by systemd as the Debian package has it', (role) => {
    const name = `packaged-${role}.service`;
    writeFileSync(join(root, 'etc/systemd/system', name), unitOf(role));
    expect(verify(name)).toMatchObject({ stderr: '', status: 0 });
  });

  it('would be refused with a setting that does not exist', () => {
    const path = join(root, 'etc/systemd/system/wrong.service');
    writeFileSync(path, '[Service]\nExecStart=/usr/local/bin/berth\nProtectSytem=strict\n');
    expect(verify('wrong.service').stderr).toContain('ProtectSytem');
  });

  it('leave the server few rights', () => {
    const words = ['security', '--offline=yes', '--threshold=25', join(folder, 'berth-server.service')];
    execFileSync('systemd-analyze', words, { stdio: 'pipe' });
  });
});
