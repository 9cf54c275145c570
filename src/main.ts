// The program `berth`: its arguments and the machine go to the command line, which loads only the command that was called.

import { homedir } from 'node:os';
import { environment, system, systemClock, systemFetch } from './base/system.ts';
import { version } from './base/version.ts';
import { runProgram } from './cli/program.ts';
import { processCommands } from './commands/registry.ts';

let interruption: AbortSignal | undefined;

// `berth ps | head`: who no longer reads needs no words.
for (const output of [system.stdout, system.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') system.exit(0);
    throw error;
  });
}

const exitCode = await runProgram(
  {
    stdout: system.stdout,
    stderr: system.stderr,
    stdin: system.stdin,
    environment: environment(),
    homeDirectory: homedir(),
    clock: systemClock,
    fetch: systemFetch,
    runProgram: system.runProgram,
    self: system.self(),
    version,
    interruption: () => (interruption ??= system.terminationSignal()),
  },
  system.arguments(),
  processCommands,
);
// What is still on its way to a slow reader must arrive; open connections of an ended watch must not hold the process.
for (const output of [system.stdout, system.stderr]) await new Promise((resolve) => output.write('', resolve));
system.exit(exitCode);
