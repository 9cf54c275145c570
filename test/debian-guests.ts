// What a user does with a guest of the Debian 12 image, the same for each driver.

import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { BuiltImage } from '../src/agent/images/build/build.ts';
import { type Fleet, runBerth, startFleet } from './processes.ts';

export const reached =
  'ready when cloud-init has ended, reached by ssh and by commands without a way to its host; and it runs a job';

interface DebianRun {
  readonly image: BuiltImage;
  /** Where the image is, and the files of this run. */
  readonly directory: string;
  readonly driver: string;
  /** More of the agent's configuration. */
  readonly agent?: Readonly<Record<string, unknown>>;
}

/** Runs the image under Berth with one driver, and uses it in every way a user has. */
export async function runDebianUnderBerth({ image, directory, driver, agent = {} }: DebianRun): Promise<void> {
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
    const said = await berth('ssh', '-i', key, 'deb', '--', 'echo "as $(id -un) on $(hostname)"; exit 3');
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
    expect(await berth('exec', '-t', '--identity', key, 'deb', '--', 'tty')).toMatchObject({
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
    await runJob(fleet, directory, { key, berth });
  } finally {
    await fleet.stop();
  }
}

/** A job with artifacts, whose instance is held because its program fails: in cloud-init's guest, on a network without a way out. */
async function runJob(
  fleet: Fleet,
  directory: string,
  { key, berth }: { readonly key: string; readonly berth: (...words: string[]) => ReturnType<typeof runBerth> },
): Promise<void> {
  const script = [
    'echo "as $(id -un) in $(pwd) with $WORD"; echo warned >&2',
    'setsid sh -c "while :; do sleep 1; done" &',
    'mkdir build; seq 1 200000 >build/numbers; seq 1 20000; printf unfinished; exit 3',
  ].join('\n');
  const options = ['--artifacts', 'build/*', '-e', "WORD=it's", '--hold', '10m', '--ssh-key', `${key}.pub`];
  const ran = await berth('job', 'run', 'debian-12', '-n', 'deb-job', ...options, '--', script);
  const numbers = (count: number): string => Array.from({ length: count }, (_, i) => `${i + 1}\n`).join('');
  expect(ran).toMatchObject({
    code: 3,
    stdout: `as root in /var/lib/berth/run/work with it's\n${numbers(20_000)}unfinished`,
    stderr: expect.stringMatching(/^warned\n.*failed with exit code 3\n.*berth ssh deb-job-1/),
  });
  expect(await berth('ssh', '-i', key, 'deb-job-1', '--', 'sudo ls /var/lib/berth/run/work')).toMatchObject({
    stdout: 'build\n',
    code: 0,
  });
  const to = join(directory, 'artifacts');
  expect(await berth('job', 'artifacts', 'get', 'deb-job', '-o', to)).toMatchObject({ code: 0 });
  expect(await readFile(join(to, 'build', 'numbers'), 'utf8')).toBe(numbers(200_000));
  expect(await berth('rm', 'deb-job-1')).toMatchObject({ code: 0 });
  await fleet.gone('deb-job-1');
}
