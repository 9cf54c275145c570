// The installer that runs before anything is installed (scripts/setup.mjs), on machines that lack this or that: it must always answer
// with a reason, so that quickstart can go on without QEMU. The happy path is what every other run of `npm test` begins with.

import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const setup = new URL('../scripts/setup.mjs', import.meta.url).href;
const absent = { name: 'no-such-package', program: 'no-such-program-of-berth', reason: 'is only asked for' };

let bin: string;
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'berth-setup-'));
});
afterEach(() => rmSync(bin, { recursive: true }));

function program(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
}

/** What ensureDebianPackages answers on a machine that has only the programs in `bin`. */
function ensure(
  packages: readonly object[],
): Promise<{ answer: { installed: boolean; reason?: string }; printed: string }> {
  const script = `import { ensureDebianPackages } from '${setup}';
    const answer = await ensureDebianPackages(${JSON.stringify(packages)}, { yes: true, purpose: 'This test' });
    console.log('answer ' + JSON.stringify(answer));`;
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ['--input-type=module', '-e', script],
      { env: { PATH: bin } },
      (error, stdout, stderr) => {
        const answer = /^answer (.*)$/m.exec(stdout)?.[1];
        if (answer === undefined) reject(new Error(`no answer: ${stderr}`, { cause: error }));
        else resolve({ answer: JSON.parse(answer), printed: stdout + stderr });
      },
    );
  });
}

describe('setup', () => {
  it('asks for nothing when the programs are there, whatever installed them', async () => {
    symlinkSync(process.execPath, join(bin, 'no-such-program-of-berth'));
    expect((await ensure([absent])).answer).toEqual({ installed: true });
  });

  it('says that there is no apt-get', async () => {
    const { answer, printed } = await ensure([absent]);
    expect(answer).toEqual({ installed: false, reason: 'there is no apt-get here to install no-such-package' });
    expect(printed).toContain('no-such-package  is only asked for');
  });

  it('shows the last words of an apt-get that failed', async () => {
    program('env', 'shift; exec "$@"');
    program('sudo', '[ "$1" = -n ] && shift; exec "$@"');
    program('apt-get', 'echo "E: Unable to locate package"; exit 100');
    const { answer, printed } = await ensure([absent]);
    expect(answer.reason).toContain('apt-get could not install no-such-package (exit code 100');
    expect(printed).toContain('E: Unable to locate package');
  });

  it('does not believe an apt-get that succeeded without the package', async () => {
    program('env', 'shift; exec "$@"');
    program('sudo', '[ "$1" = -n ] && shift; exec "$@"');
    program('apt-get', 'exit 0');
    expect((await ensure([absent])).answer.reason).toBe('apt-get succeeded, yet no-such-package is not there');
  });
});
