// What is on the disk with a guest's program: a tar archive without its end, to which the files of a commit may be added. Pure.

import { runPathDefault, type RunSpec } from '../../../api/resources/run.ts';
import { runnerScript } from './runner-script.ts';

/** By which a guest that sees no serial number knows the disk: the name of its first file. */
const markerName = 'berth-run';

/** With the values of secrets. */
type ProgramToRun = Omit<RunSpec, 'env'> & { readonly env: Readonly<Record<string, string>> };

export function runDiskEntries(run: ProgramToRun): Buffer {
  const files: readonly (readonly [string, string, number])[] = [
    [markerName, '', 0o600],
    ['runner.sh', runnerScript, 0o700],
    ...programFiles(run).map(([name, text]) => [name, text, 0o600] as const),
  ];
  return Buffer.concat(files.map(([name, text, mode]) => entry(name, Buffer.from(text), mode)));
}

/** What says which program is run, and how. */
export function programFiles(run: ProgramToRun): readonly (readonly [name: string, text: string])[] {
  return [
    ['settings', `program=${quoted(run.repo?.path ?? runPathDefault)}\n`],
    ['env', environmentOf(run)],
    ['artifacts', run.artifacts.map((pattern) => `${pattern}\n`).join('')],
    ...(run.script === undefined ? [] : [['script', run.script] as const]),
  ];
}

/** Where the added files of the commit are to be: the prefix of their names. */
export const treePrefix = 'work/';

/** Lines for the shell that starts the program. */
function environmentOf({ env, repo }: ProgramToRun): string {
  const facts: Record<string, string> =
    repo === undefined ? {} : { REPO_URL: repo.url, COMMIT_SHA: repo.commit, JOB_FILE: repo.path ?? runPathDefault };
  const own = Object.entries(facts).flatMap(([name, value]) => [
    [`SOLSTICE_${name}`, value] as const,
    [`BERTH_${name}`, value] as const,
  ]);
  const all = [...Object.entries(env), ...own];
  const exported = all.filter(([name]) => shellName.test(name));
  const others = all.filter(([name]) => !shellName.test(name));
  return [
    ...exported.map(([name, value]) => `export ${name}=${quoted(value)}\n`),
    ...(others.length === 0 ? [] : [`set -- ${others.map(([name, value]) => quoted(`${name}=${value}`)).join(' ')}\n`]),
  ].join('');
}

const shellName = /^[A-Za-z_][A-Za-z0-9_]*$/;

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

const blockBytes = 512;

function entry(name: string, data: Buffer, mode: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  header.write(name, 0, 100);
  header.write(octal(mode, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(data.length, 12), 124);
  header.write(octal(0, 12), 136);
  header.write('        ', 148);
  header.write('0', 156);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, data, Buffer.alloc(-data.length & (blockBytes - 1))]);
}
