import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Logs twice, and says on standard output that it goes on. */
const program = (format: string): string =>
  `import { systemLogger } from ${JSON.stringify(join(import.meta.dirname, '../src/base/system.ts'))};
   const log = systemLogger('info', ${JSON.stringify(format)});
   for (const i of [1, 2]) log.info('hello', { i });
   setImmediate(() => process.stdout.write('goes on'));`;

it.each(['json', 'text'])('goes on while its log cannot be written, as %s', (format) => {
  const full = openSync('/dev/full', 'w');
  try {
    const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program(format)], {
      stdio: ['ignore', 'pipe', full],
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, 'goes on']);
  } finally {
    closeSync(full);
  }
});
