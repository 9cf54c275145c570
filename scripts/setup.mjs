// Makes what the other scripts need present: npm packages, and Debian packages with the reason for each. Plain JavaScript for
// Node >= 20 with nothing installed, because it runs before anything is. It installs nothing without saying what and why.

import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, lstatSync, readFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { isNewEnough, leastText } from '../bin/node-needed.js';

export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const binaries = join(projectRoot, 'node_modules', '.bin');

/** Ends the process with a clear sentence when the running Node cannot even run these scripts. */
export function requireNode20() {
  const [major] = process.versions.node.split('.').map(Number);
  if (major >= 20) return;
  fail(
    `Node ${process.versions.node} is too old for these scripts; install Node 20 or newer (npm then brings Node 24 itself)`,
  );
}

/** Runs `npm ci` when node_modules is missing or is not what package-lock.json asks for. */
export async function ensureNpmPackages() {
  const why = npmPackagesMissing();
  if (!why) return;
  if (lstatSync(join(projectRoot, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink())
    fail(`npm packages: ${why}; node_modules is a link, so run npm ci in the folder that it belongs to`);
  note(`npm packages: ${why}; running npm ci (about half a minute) ...`);
  const startedAt = Date.now();
  // Never the Node inside node_modules: npm is about to delete it.
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => !entry.endsWith(join('node_modules', '.bin')));
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const result = await capture('npm', args, { cwd: projectRoot, env: { ...process.env, PATH: path.join(delimiter) } });
  if (result.code !== 0) {
    process.stderr.write(result.output);
    fail(`npm ci failed (${result.problem}); the lines above say why. Is the npm registry reachable?`);
  }
  note(`npm packages: installed in ${seconds(startedAt)}`);
}

/** Builds the dashboard when its sources are newer; a few seconds. Without it the server says how to build it. */
export async function ensureDashboard() {
  const code = await runToEnd(nodePath(), ['scripts/build-web.ts', '--if-stale']);
  if (code !== 0) fail('the dashboard cannot be built; the lines above say why');
}

/** The Node that runs Berth: the one npm brought, else the running one when it is new enough. */
export function nodePath() {
  const brought = join(binaries, 'node');
  if (isExecutable(brought)) return brought;
  if (isNewEnough(process.versions.node)) return process.execPath;
  return fail(
    `Berth needs Node ${leastText}; this is ${process.versions.node}, and npm has no Node 24 package for ${process.platform}-${process.arch}. Install Node 24 from nodejs.org`,
  );
}

/**
 * Makes the Debian packages present. `packages` is a list of `{ name, program?, reason }`; one whose program is on PATH (or at its
 * absolute path) counts as present. Answers `{ installed: true }`, or `{ installed: false, reason }` when that is not to be had here: the caller
 * decides what can be done without.
 */
export async function ensureDebianPackages(packages, { yes = false, purpose }) {
  const missing = missingDebianPackages(packages);
  if (missing.length === 0) return { installed: true };
  const names = missing.map((entry) => entry.name);
  const width = Math.max(...names.map((name) => name.length));
  note(`${purpose} needs ${count(missing.length, 'Debian package')} more:`);
  for (const entry of missing) note(`  ${entry.name.padEnd(width)}  ${entry.reason}`);

  if (!commandPath('apt-get'))
    return { installed: false, reason: `there is no apt-get here to install ${names.join(', ')}` };
  const root = process.getuid?.() === 0;
  if (!root && !commandPath('sudo')) {
    return { installed: false, reason: `installing ${names.join(', ')} needs root, and there is no sudo` };
  }
  const terminal = Boolean(process.stdin.isTTY && process.stdout.isTTY);
  if (!yes && terminal) {
    const answer = await ask(
      `Install ${missing.length === 1 ? 'it' : 'them'} now with ${root ? '' : 'sudo '}apt-get? [Y/n] `,
    );
    if (!/^(y(es)?)?$/i.test(answer.trim()))
      return { installed: false, reason: `${names.join(', ')} not installed, as you asked` };
  } else {
    note(yes ? 'Installing (--yes) ...' : 'Installing without asking, since this is not a terminal ...');
  }

  const startedAt = Date.now();
  const prefix = root ? [] : ['sudo', ...(terminal ? [] : ['-n'])];
  const options = ['-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=2', '-o', 'Acquire::http::Timeout=30'];
  const apt = (...args) => {
    const words = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...options, ...args];
    return capture(words[0], words.slice(1), { stdin: terminal ? 'inherit' : 'ignore', onLine: showAptProgress });
  };
  showProgress('apt-get update');
  const update = await apt('update');
  // A failed update is not the end: the lists of an earlier one may do.
  const install = await apt('install', '-y', '--no-install-recommends', '-o', 'APT::Status-Fd=1', ...names);
  clearProgress();
  if (install.code !== 0) {
    if (update.code !== 0) process.stderr.write(tail(update.output));
    process.stderr.write(tail(install.output));
    return {
      installed: false,
      reason: `apt-get could not install ${names.join(', ')} (${install.problem}; its last lines are above)`,
    };
  }
  const still = missingDebianPackages(missing);
  if (still.length > 0)
    return {
      installed: false,
      reason: `apt-get succeeded, yet ${still.map((entry) => entry.name).join(', ')} is not there`,
    };
  note(`Debian packages: installed ${names.join(', ')} in ${seconds(startedAt)}`);
  return { installed: true };
}

/** Runs a command in the foreground on our terminal, passes signals on, and resolves with its exit code. */
export function runToEnd(command, args, env = process.env) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: projectRoot, stdio: 'inherit', env: withBinaries(env) });
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    const pass = (signal) => child.kill(signal);
    for (const signal of signals) process.on(signal, pass);
    const finish = (code) => {
      for (const signal of signals) process.off(signal, pass);
      resolve(code);
    };
    child.on('error', (error) => {
      process.stderr.write(`cannot run ${command}: ${error.message}\n`);
      finish(127);
    });
    child.on('exit', (code, signal) => finish(code ?? 128 + signalNumber(signal)));
  });
}

export function say(line) {
  process.stdout.write(`${line}\n`);
}

/** Of the setting up: not part of what a command answers. */
function note(line) {
  process.stderr.write(`${line}\n`);
}

export function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** The environment in which `node` and every tool are the project's own. */
function withBinaries(env) {
  return { ...env, PATH: `${binaries}${delimiter}${env.PATH ?? ''}` };
}

/** Why `npm ci` is due, or null. npm writes node_modules/.package-lock.json last, so an interrupted install shows too. */
function npmPackagesMissing() {
  const wantedFile = join(projectRoot, 'package-lock.json');
  const presentFile = join(projectRoot, 'node_modules', '.package-lock.json');
  if (!existsSync(presentFile)) return 'not installed yet';
  const wanted = JSON.parse(readFileSync(wantedFile, 'utf8')).packages;
  const present = JSON.parse(readFileSync(presentFile, 'utf8')).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue;
    const found = present[path];
    // Packages for other systems are left out by npm.
    if (!found && !entry.optional) return `${path} is missing`;
    if (found && found.integrity !== entry.integrity) return `${path} is not the ${entry.version} of package-lock.json`;
  }
  for (const path of Object.keys(present)) if (!wanted[path]) return `${path} is no longer wanted`;
  return null;
}

function missingDebianPackages(packages) {
  const query = spawnSync(
    'dpkg-query',
    ['-W', '-f=${Package} ${db:Status-Status}\\n', ...packages.map((entry) => entry.name)],
    {
      encoding: 'utf8',
    },
  );
  const installed = new Set(
    (query.stdout ?? '').split('\n').flatMap((line) => (line.endsWith(' installed') ? [line.split(' ')[0]] : [])),
  );
  return packages.filter((entry) => !installed.has(entry.name) && !(entry.program && commandPath(entry.program)));
}

/** Where a command is: on PATH, or in the folders for administrators that a plain user's PATH leaves out. */
function commandPath(command) {
  if (isAbsolute(command)) return existsSync(command) ? command : undefined;
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, command)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent or not ours to run: the same to the caller
  }
}

/** Runs a command and keeps what it prints. `problem` describes a failure in a few words. */
function capture(command, args, { cwd, env = process.env, stdin = 'ignore', onLine = () => {} } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: [stdin, 'pipe', 'pipe'] });
    let output = '';
    let rest = '';
    const take = (chunk) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      for (const line of lines) if (!onLine(line)) output += `${line}\n`;
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.on('error', (error) => resolve({ code: 127, output, problem: error.message }));
    child.on('close', (code, signal) =>
      resolve({ code: code ?? 128, output: output + rest, problem: signal ?? `exit code ${code}` }),
    );
  });
}

/** Takes apt's machine-readable lines, `dlstatus:<n>:<percent>:<text>` and `pmstatus:<package>:<percent>:<text>`. */
function showAptProgress(line) {
  const match = /^(dl|pm)status:.*?:([\d.]+):(.*)$/.exec(line);
  if (match) showProgress(`${match[1] === 'dl' ? 'downloading' : 'installing'} ${Math.floor(Number(match[2]))} %`);
  return match !== null;
}

let progressShown = '';
/** In place on a terminal; elsewhere one line for each step, without the percentages. */
function showProgress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K  ${text}`);
  else {
    const step = text.replace(/ \d+ %$/, '');
    if (step !== progressShown) note(`  ${step} ...`);
    progressShown = step;
  }
}

function clearProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  progressShown = '';
}

async function ask(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await terminal.question(question);
  } catch {
    process.exit(130); // Ctrl-C at the question
  } finally {
    terminal.close();
  }
}

function tail(text) {
  return `${text.trimEnd().split('\n').slice(-15).join('\n')}\n`;
}

function seconds(startedAt) {
  return `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function signalNumber(signal) {
  return { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal] ?? 0;
}
