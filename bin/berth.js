#!/bin/sh
':' /* A shell reads this as a command, and Node as a comment; exec node -- "$0" "$@" # */;
// The `berth` command. Plain JavaScript that any Node from 18 on can start: it finds a Node new enough for Berth, the running one or the
// one npm brought, and runs the program. It must not import anything of Berth before that: the native parts crash an old Node. And it must
// never start Node without `--`: up to there Node takes `--env-file` for its own, also among the words after the program's name.
// No formatter may touch the second line: two commands for a shell where a semicolon comes before the comment.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as module from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { broughtPackage, nodeFor } from './node-needed.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bundle = join(root, 'main.js'); // in the published package
const program = existsSync(bundle) ? bundle : join(root, 'src', 'main.ts');
const { node: version } = process.versions;
const platform = `${process.platform}-${process.arch}`;
const found = nodeFor({ version, platform, brought: broughtNode(), published: program === bundle });

/** MiB. Half of V8's own: pauses are shorter, and a burst is worked off as quickly; with 16 they were shorter still, and bursts slower. */
const young = ['--max-semi-space-size=32'];
/**
 * When V8 collects in full: when what is held has doubled, the bytes of buffers counted with the rest. By itself it does so for every
 * 64 MiB of buffers, however much is held: every three seconds with 10,000 watchers, who wait a quarter of a second each time. Node 24
 * (V8 13.6) knows both of them; another may not, and ends at once when it is given what it does not know.
 */
const full = ['--external-memory-accounted-in-global-limit', '--heap-growing-percent=100'];

if (found.running) {
  startAgain(flagsFor(Number(version.split('.')[0])));
  // Halves the start: what was compiled is kept, not made anew. In the user's own directory, for others could write to one in /tmp.
  module.enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth', 'compiled'));
  await import(program);
} else if (found.node !== undefined) runWith(found.node);
else {
  process.stderr.write(`${found.refusal}\n`);
  process.exitCode = 1;
}

/** Of the package beside this one, or below it; undefined where npm brought none. */
function broughtNode() {
  try {
    return module.createRequire(import.meta.url).resolve(`${broughtPackage(platform)}/bin/node`);
  } catch {
    return undefined;
  }
}

/** For Node of that version. Not what whoever started it has chosen, in this way or another; or we ourselves, the second time. */
function flagsFor(version) {
  const command = process.argv.slice(2).find((word) => !word.startsWith('-'));
  if (command !== 'server' && command !== 'dev') return [];
  const chosen = `${process.env.NODE_OPTIONS} ${process.execArgv.join(' ')}`;
  const wanted = version === 24 ? [...young, ...full] : young;
  return wanted.filter((flag) => !chosen.includes(flag.replace(/^--/, '').replace(/=.*/, '')));
}

/** With the Node that npm brought. */
function runWith(node) {
  const child = spawn(node, [...flagsFor(24), '--', program, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`berth cannot run ${node}: ${error.message}\n`);
    process.exit(127);
  });
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)));
}

/** With the flags, in the place of this process, where the system can do that (Node's process.execve: not on Windows); else it goes on as it is. */
function startAgain(flags) {
  if (flags.length === 0) return;
  try {
    const own = [...flags, ...process.execArgv, '--'];
    process.execve?.(process.execPath, [process.execPath, ...own, ...process.argv.slice(1)]);
  } catch {
    // It serves as well, with longer pauses.
  }
}
