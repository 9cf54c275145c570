// Keeps a guest's console log bounded while no agent runs: a small process beside the guest, which ends with it. It drops the start of the log as
// the agent does, only later, so that it acts where no agent did. It never changes a byte that stays, and needs nothing but two open files.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { GuestRecord } from '../guest-record.ts';
import { toolEnvironment } from '../../../host/run-tool.ts';

/** Beside the console log: how many bytes of its start the keeper has dropped. */
const startFile = 'console.start';

export interface ConsoleKeeper {
  readonly pid: number | undefined;
  /** Resolves when its process has ended. */
  readonly ended: Promise<void>;
}

/**
 * Starts one for the log of the guest that `writer` runs. Where that guest has one already, the new one ends by itself. Throws when there is no log, or
 * no perl.
 */
export async function startConsoleKeeper(options: {
  readonly path: string;
  readonly writer: NonNullable<GuestRecord['process']>;
  readonly maxBytes: number;
  readonly keptBytes: number;
  /** How often it looks at the log. Default 1 s: a serial port writes a few MiB in that time at most. */
  readonly everyMs?: number;
}): Promise<ConsoleKeeper> {
  const { path, writer, maxBytes, keptBytes, everyMs = 1000 } = options;
  const log = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    // What is dropped is on disk before it is dropped.
    const start = await open(
      join(dirname(path), startFile),
      constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      const numbers = [writer.pid, writer.startTicks, maxBytes, keptBytes, everyMs / 1000];
      const child = spawn('perl', ['-e', program, '--', ...numbers.map(String)], {
        cwd: '/', // it keeps no folder from being removed
        detached: true,
        stdio: [log.fd, start.fd, 'ignore'],
        env: { ...toolEnvironment },
      });
      child.unref();
      const ended = Promise.withResolvers<void>();
      child.on('exit', () => ended.resolve());
      await once(child, 'spawn');
      return { pid: child.pid, ended: ended.promise };
    } finally {
      await start.close();
    }
  } finally {
    await log.close();
  }
}

/** Where the log of a guest begins, as far as its keeper knows. */
export async function keptFrom(path: string): Promise<number> {
  const file = await open(join(dirname(path), startFile), 'r').catch(() => undefined); // it has none, or never had to drop anything
  if (file === undefined) return 0;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(startDigits), 0, startDigits, 0);
    const start = Number(buffer.toString('latin1', 0, bytesRead));
    return Number.isSafeInteger(start) ? start : 0;
  } finally {
    await file.close();
  }
}

/** Always as many, so that one number replaces another in a single write. */
const startDigits = 20;

/**
 * Standard input is the log, standard output the file with its start. A descriptor of the guest's process (pidfd_open, 434 on every architecture)
 * says when that has ended, without asking. A lock sees to it that there is one; the one of the guest's last run may take a moment to end.
 * The log is too long when it is so by its length, and by what it takes up: what the agent has dropped counts no more.
 */
const program = [
  'my ($pid, $ticks, $max, $kept, $every) = @ARGV;',
  'my $guest = syscall(434, $pid + 0, 0);',
  'exit if $guest < 0;',
  'open(my $stat, "<", "/proc/$pid/stat") or exit;',
  'my $line = <$stat>; $line =~ s/^.*\\) //s;',
  'exit if (split(/ /, $line))[19] != $ticks;',
  'my $tries = 20;',
  'until (flock(STDOUT, 6)) { exit if --$tries == 0; select(undef, undef, undef, 0.1); }',
  `sysread(STDOUT, my $known, ${startDigits});`,
  'my $start = $known + 0;',
  'for (;;) {',
  '  my $ended = ""; vec($ended, $guest, 1) = 1;',
  '  exit if select($ended, undef, undef, $every) > 0;',
  '  my ($size, $blocks) = (stat STDIN)[7, 12];',
  '  next if $size - $start <= $max || $blocks * 512 <= $max;',
  '  $start = int(($size - $kept) / 4096) * 4096;',
  '  sysseek(STDOUT, 0, 0);',
  `  syswrite(STDOUT, sprintf("%0${startDigits}d", $start)) or next;`,
  '  system("fallocate", "--punch-hole", "--offset", "0", "--length", $start, "/proc/self/fd/0");',
  '}',
].join('\n');
