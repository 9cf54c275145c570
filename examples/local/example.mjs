// What the examples share: a directory of their own, and processes that end with them. Everything runs on this machine, and all of it is
// removed at the end.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The command line of Berth, for `process.execPath`. */
export const berth = join(dirname(fileURLToPath(import.meta.url)), '../../bin/berth.js');

export const say = (text) => process.stdout.write(`\n== ${text}\n`);

export class Example {
  /** @type {string} */
  directory;
  #stops = [];

  /** Runs `steps` in a new directory, and cleans up also when it fails. Resolves with what it returns. */
  static async run(steps) {
    const example = new Example();
    example.directory = await mkdtemp(join(tmpdir(), 'berth-example-'));
    example.onEnd(() => rm(example.directory, { recursive: true, force: true }));
    try {
      await chmod(example.directory, 0o755); // the broker's user passes through it
      return await steps(example);
    } finally {
      for (const stop of example.#stops.toReversed()) await stop();
    }
  }

  /** The last one is called first. */
  onEnd(stop) {
    this.#stops.push(stop);
  }

  /** Starts `berth WORDS`. Resolves with the first line that matches `ready`, on standard error or, with `from`, standard output. */
  async startBerth(words, { environment, ready, from = 'stderr', echo = false }) {
    const other = 'inherit';
    const stdio = from === 'stderr' ? ['ignore', other, 'pipe'] : ['ignore', 'pipe', other];
    const child = spawn(process.execPath, [berth, ...words], { env: environment, stdio });
    const exited = once(child, 'exit');
    this.onEnd(async () => {
      child.kill('SIGTERM');
      await exited;
    });
    for await (const line of createInterface({ input: child[from] })) {
      if (echo) process.stdout.write(`${line}\n`);
      if (!ready.test(line)) continue;
      child[from].resume();
      return line;
    }
    throw new Error(`berth ${words[0]} ended`);
  }
}
