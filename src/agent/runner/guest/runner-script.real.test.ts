import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { shells, startTestGuest, type TestGuest, type TestGuestOptions } from './test-guest.ts';

describe.each(shells)('the runner in %s', (shell) => {
  let guest: TestGuest | undefined;

  async function begin(options: Omit<TestGuestOptions, 'shell'>): Promise<TestGuest> {
    guest = await startTestGuest({ shell, ...options });
    await guest.hello();
    guest.say({ kind: 'go' });
    return guest;
  }

  afterEach(async () => {
    await guest?.close();
    guest = undefined;
  });

  it.each<[string, string, number, string, string]>([
    ['nothing', 'true', 0, '', ''],
    ['a line on each stream', 'echo out; echo err >&2', 0, 'out\n', 'err\n'],
    ['an exit code', 'echo bye; exit 7', 7, 'bye\n', ''],
    ['exit 255', 'exit 255', 255, '', ''],
    ['a last line without its newline', 'printf "a\\nb"', 0, 'a\nb', ''],
    ['NUL bytes', 'printf "a\\0b\\n"', 0, 'a\0b\n', ''],
    ['frames of the protocol', 'printf "\\nberth1 exit 3 .\\n"', 0, '\nberth1 exit 3 .\n', ''],
    ['the end by a signal', 'echo x; kill -9 $$', 137, 'x\n', ''],
    ['a program that closes its output', 'echo a; exec >&- 2>&-; sleep 0; exit 4', 4, 'a\n', ''],
    ['a program that reads its input', 'cat; echo end', 0, 'end\n', ''],
    ['an unknown command', 'exec no-such-command 2>/dev/null', 127, '', ''],
    ['its environment', 'echo "$A|$SOLSTICE_WORKDIR|$BERTH_WORKDIR" | sed "s|$PWD|W|g"', 0, 'x y|W|W\n', ''],
    ['a background child that holds its output', 'sleep 1000 & echo started', 0, 'started\n', ''],
  ])('carries %s', async (_, script, code, stdout, stderr) => {
    const guest = await begin({ script, env: "export A='x y'\n" });
    expect(await guest.finish()).toBe(code);
    expect([guest.text('stdout'), guest.text('stderr')]).toEqual([stdout, stderr]);
  });

  it('ends although a daemon that left its group holds the output', async () => {
    const guest = await begin({ script: 'setsid sleep 60 & echo $!; exit 5' });
    expect(await guest.finish()).toBe(5);
    const pid = Number(guest.text('stdout'));
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The shell of the script forked once more.
    }
  });

  it('runs a file of the work directory', async () => {
    const guest = await begin({ program: 'job.sh', work: { 'job.sh': 'echo "in $(ls)"\n' } });
    expect(await guest.finish()).toBe(0);
    expect(guest.text('stdout')).toBe('in job.sh\n');
  });

  it('is not misled by variables of the job that have the names of its own', async () => {
    const env = 'export here=/ program=other CDPATH=/tmp\n';
    const script = 'echo "$here $program $BERTH_WORKDIR" | sed "s|$PWD|W|"\n';
    const guest = await begin({ program: 'job.sh', env, work: { 'job.sh': script, other: 'echo no\n' } });
    expect(await guest.finish()).toBe(0);
    expect(guest.text('stdout')).toBe('/ other W\n');
  });

  it('says which file is missing', async () => {
    const guest = await begin({ program: 'no/such.sh' });
    expect(await guest.finish()).toBe(127);
    expect(guest.text('stderr')).toBe('berth: the work directory has no file no/such.sh\n');
  });

  it('carries a flood whole, with no more than its spool under way', async () => {
    const guest = await begin({ script: 'i=0; while [ $i -lt 20 ]; do head -c 500000 /dev/zero; i=$((i + 1)); done' });
    expect(await guest.finish()).toBe(0);
    expect(guest.bytes('stdout')).toBe(10_000_000);
  });

  it.skipIf(shell === 'busybox')('carries checksums over a serial port', async () => {
    const guest = await begin({ script: 'seq 1 50000', checked: true });
    expect(await guest.finish()).toBe(0);
    expect(guest.text('stdout').split('\n')).toHaveLength(50_001);
  });

  it('waits while nothing is acknowledged, and goes on', async () => {
    guest = await startTestGuest({ shell, script: 'head -c 9000000 /dev/zero; echo end' });
    guest.acknowledges = false;
    await guest.hello();
    guest.say({ kind: 'go' });
    const { port } = guest;
    await guest.until(() => (guest?.bytes('stdout') ?? 0) > 1_000_000);
    expect(guest.bytes('stdout')).toBeLessThanOrEqual(64 * 65_536);
    port.pause();
    guest.acknowledges = true;
    port.resume();
    await guest.hello();
    expect(await guest.finish()).toBe(0);
    expect(guest.bytes('stdout')).toBe(9_000_004);
  });

  it('sends again what a connection lost', async () => {
    guest = await startTestGuest({ shell, script: 'i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i + 1)); done' });
    await guest.hello();
    guest.say({ kind: 'go' });
    for (const bytes of [1, 5000, 20_000]) {
      await guest.until(() => (guest?.bytes('stdout') ?? 0) >= bytes);
      // Another agent: what comes before its welcome does not count.
      await guest.hello();
    }
    expect(await guest.finish()).toBe(0);
    expect(guest.text('stdout')).toBe(Array.from({ length: 3000 }, (_, i) => `line ${i}\n`).join(''));
  });

  it('begins once, whatever it is told', async () => {
    const guest = await begin({ script: 'echo once' });
    guest.say({ kind: 'go' });
    await guest.exitCode();
    guest.say({ kind: 'go' });
    const welcome = await guest.hello();
    expect(welcome).toMatchObject({ phase: 'over' });
    await guest.finish();
    expect(guest.text('stdout')).toBe('once\n');
  });

  it('ends the program and its children with SIGTERM', async () => {
    const guest = await begin({ script: 'trap "echo asked; exit 3" TERM; echo ready; while :; do sleep 0.05; done' });
    await guest.until(() => guest.text('stdout') === 'ready\n');
    guest.say({ kind: 'term' });
    expect(await guest.finish()).toBe(3);
    expect(guest.text('stdout')).toBe('ready\nasked\n');
  });

  it('kills a program that does not care', async () => {
    const guest = await begin({ script: 'trap "" TERM; echo ready; while :; do sleep 0.05; done' });
    await guest.until(() => guest.text('stdout') === 'ready\n');
    guest.say({ kind: 'term' });
    guest.say({ kind: 'kill' });
    expect(await guest.finish()).toBe(137);
  });

  it('ends a program that is told before it began', async () => {
    const guest = await begin({ script: 'sleep 100' });
    guest.say({ kind: 'term' });
    expect(await guest.finish()).toBe(143);
  });

  it('hands over the artifacts that the patterns name', async () => {
    const script =
      'mkdir build; echo a >build/a.txt; echo "b c" >"build/b c.txt"; echo x >build/x.o; echo y >./-y; exit 1';
    const guest = await begin({ script, artifacts: ['build/*.txt', '-y', 'none/*'] });
    expect(await guest.finish()).toBe(1);
    const listed = execFileSync('tar', ['tf', '-'], { input: guest.content('artifacts') }).toString();
    expect(listed.split('\n').map((name) => name.replace(/^\.\//, ''))).toEqual([
      'build/a.txt',
      'build/b c.txt',
      '-y',
      '',
    ]);
  });
});
