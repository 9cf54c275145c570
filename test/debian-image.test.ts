// The Debian 12 image with its real cloud-init: booted by hand, and run by Berth as a user would.

import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage } from '../src/agent/images/build.ts';
import { startLibvirt, whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { bootImage } from '../src/agent/images/test-boot.ts';
import { runBerth, startFleet } from './processes.ts';

describe('the Debian 12 image', () => {
  let directory = '';
  let image: BuiltImage;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-debian-'));
    await chmod(directory, 0o711); // libvirt runs guests as a user of its own
    image = await buildImage('debian-12', { directory });
  }, 600_000);
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it("boots to cloud-init's end with its name, address, own keys, grown disk and script, and obeys the power button", async () => {
    const userData = `#!/bin/sh
echo "script: on $(hostname), root of $(df -BM --output=size / | tail -1 | tr -d ' M') MiB"
echo "script: machine $(cat /etc/machine-id)"
echo "script: failed units: $(systemctl list-units --failed --no-legend | wc -l)"
ls /etc/ssh/ssh_host_*_key
`;
    const guest = await bootImage(image.path, {
      memoryMiB: 512,
      diskSize: '4G',
      seed: { hostname: 'deb-one', userData },
    });
    try {
      await guest.line(/Cloud-init v\. \S+ finished at .*DataSourceNoCloud/);
      expect(guest.console()).toMatch(/ci-info: \|\s+eth0\s+\|\s+True\s+\|\s+10\.0\.2\.15/);
      expect(guest.console()).toContain('script: on deb-one');
      expect(Number(/root of (\d+) MiB/.exec(guest.console())?.[1])).toBeGreaterThan(3500);
      expect(guest.console()).toMatch(/script: machine [0-9a-f]{32}/);
      expect(guest.console()).toContain('script: failed units: 0');
      expect(guest.console()).toContain('/etc/ssh/ssh_host_ed25519_key');
      guest.pressPowerButton();
      await guest.ended;
    } finally {
      await guest.stop();
    }
  }, 600_000);

  const reached = 'ready when cloud-init has ended, reached by ssh and by commands without a way to its host';
  it(`runs under Berth and QEMU: ${reached}`, () => runUnderBerth('qemu', {}), 600_000);

  const noLibvirt = whyNoLibvirt();
  it.skipIf(noLibvirt !== undefined)(
    `runs under Berth and libvirt: ${reached}${noLibvirt === undefined ? '' : ` (${noLibvirt})`}`,
    async () => {
      const daemon = await startLibvirt({ asInstalled: true });
      try {
        const uri = `qemu:///system?socket=${daemon.path}`;
        await runUnderBerth('libvirt', { libvirtUri: uri, libvirtNetwork: 'user' });
      } finally {
        await daemon.stop();
      }
    },
    600_000,
  );

  async function runUnderBerth(driver: string, agent: Readonly<Record<string, unknown>>): Promise<void> {
    const key = join(directory, `key-${driver}`);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
    const vendorDataFile = join(directory, 'vendor.yaml');
    await writeFile(
      vendorDataFile,
      '#cloud-config\nbootcmd: [[sh, -c, "echo of the operator > /run/vendor"]]\nruncmd: [[sh, -c, "echo vendor > /dev/console"]]\n',
    );
    const fleet = await startFleet(join(directory, driver), {
      imageRoots: [directory],
      drivers: [driver],
      agent: { ...agent, vendorDataFile },
    });
    try {
      await fleet.client.create('image', { metadata: { name: 'debian-12' }, spec: image.spec });
      const userData = join(directory, 'user-data');
      await writeFile(userData, '#cloud-config\nruncmd: [[sh, -c, "echo runcmd on $(hostname) > /dev/console"]]\n');
      const berth = (...words: string[]) =>
        runBerth(words, { ...fleet.environment, BERTH_CONFIG: join(directory, 'contexts.yaml') });
      const line = ['run', 'debian-12', '--driver', driver, '--name', 'deb', '--ssh-key', `${key}.pub`, '--wait'];
      const ran = await berth(...line, '--timeout', '8m', '--user-data', userData);
      expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/^deb is ready /) });
      const pieces: Uint8Array[] = [];
      for await (const piece of fleet.client.log('deb')) pieces.push(piece);
      expect(Buffer.concat(pieces).toString()).toContain('runcmd on deb');
      expect(Buffer.concat(pieces).toString()).not.toMatch(/^vendor/m); // of both, what the user wants counts
      const said = await berth('ssh', '-i', key, 'debian@deb', '--', 'echo "as $(id -un) on $(hostname)"; exit 3');
      expect(said).toMatchObject({ stdout: 'as debian on deb\n', code: 3 });
      await writeFile(join(directory, 'letter'), 'a letter\n');
      expect(await berth('cp', '-i', key, join(directory, 'letter'), 'debian@deb:/tmp/')).toMatchObject({ code: 0 });
      expect(await berth('exec', '-w', '/tmp', 'deb', '--', 'cat', 'letter')).toMatchObject({
        stdout: 'a letter\n',
        code: 0,
      });
      expect(await berth('exec', 'deb', '--', 'cat', '/run/vendor')).toMatchObject({ stdout: 'of the operator\n' });
      expect(await berth('exec', 'deb', '--', 'sh', '-c', 'echo oops >&2; exit 4')).toMatchObject({
        stderr: 'oops\n',
        code: 4,
      });
      expect(
        await berth(
          'exec',
          '--by',
          'ssh',
          '--identity',
          key,
          '-w',
          '/tmp',
          '-e',
          "WORD=it's",
          'debian@deb',
          '--',
          'sh',
          '-c',
          'echo "$WORD in $PWD"; exit 5',
        ),
      ).toMatchObject({ stdout: "it's in /tmp\n", code: 5 });
      // Where the host cannot, ssh does it: the guest agent has no terminals, and then there is no guest agent.
      expect(await berth('exec', '-t', '--identity', key, 'debian@deb', '--', 'tty')).toMatchObject({
        stdout: expect.stringContaining('/dev/pts/'),
        stderr: expect.stringContaining('has no terminals'),
        code: 0,
      });
      const stop = ['sudo', 'systemctl', 'stop', 'qemu-guest-agent'];
      expect(await berth('exec', '--by', 'ssh', '--identity', key, 'debian@deb', '--', ...stop)).toMatchObject({
        code: 0,
      });
      expect(await berth('exec', '--by', 'host', 'deb', '--', 'id')).toMatchObject({
        stderr: expect.stringContaining('the guest agent does not answer'),
        code: 5,
      });
      expect(await berth('exec', '--identity', key, 'debian@deb', '--', 'id', '-un')).toMatchObject({
        stdout: 'debian\n',
        stderr: expect.stringContaining('trying your own ssh'),
        code: 0,
      });
      expect(await berth('ip', 'deb')).toMatchObject({ stdout: '10.0.2.15\n' });
      await fleet.client.delete('instance', 'deb');
      await fleet.gone('deb');
    } finally {
      await fleet.stop();
    }
  }
});
