// `berth job artifacts ls|get NAME`: the files that a job has kept.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, Interrupted } from '../exit-codes.ts';
import { writeFailure } from '../options/file-failure.ts';
import { bytes, parseInteger } from '../options/units.ts';
import { type Format, printTable, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { writeOut } from '../print/write-out.ts';
import { openSession } from '../session.ts';
import { tarEntries } from './tar-entries.ts';
import { unpack } from './unpack.ts';

interface AttemptOption {
  readonly attempt?: string;
}

export function artifactsCommand(cli: Cli): Command {
  return new Command('artifacts')
    .description('Artifacts: files that a job has kept')
    .addCommand(lsCommand(cli))
    .addCommand(getCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('List the artifacts of a job')
    .argument('<job>')
    .option('--attempt <number>', 'of this attempt; default: the last')
    .addOption(outputOption('value'))
    .action(async (name: string, { output, attempt }: AttemptOption & { output: Format }, command: Command) => {
      const files: { readonly name: string; readonly type: string; readonly sizeBytes: number }[] = [];
      await reading(cli, command, { name, attempt }, async (content) => {
        for await (const { name: file, type, sizeBytes } of tarEntries(content))
          if (type !== 'directory') files.push({ name: file.replace(/^\.\//, ''), type, sizeBytes });
      });
      if (output === 'json' || output === 'yaml') return printValue(cli, output, files);
      printTable(
        cli,
        [
          { header: 'SIZE', value: ({ sizeBytes }) => bytes(sizeBytes), right: true },
          { header: 'NAME', importance: 'major', value: (file) => file.name },
        ],
        files,
      );
    });
}

interface GetOptions extends AttemptOption {
  readonly to?: string;
}

function getCommand(cli: Cli): Command {
  return new Command('get')
    .description('Download the artifacts of a job')
    .argument('<job>')
    .option('--attempt <number>', 'of this attempt; default: the last')
    .option(
      '-o, --to <path>',
      'a directory to unpack into, default: named after the job; a name that ends in .tar, or - for standard output: the archive itself',
    )
    .action(async (name: string, { to = name, attempt }: GetOptions, command: Command) => {
      await reading(cli, command, { name, attempt }, async (content) => {
        if (to === '-') {
          for await (const piece of content) await writeOut(cli.stdout, piece);
          return;
        }
        if (to.endsWith('.tar')) {
          cli.stderr.write(`${to}: ${bytes(await save(content, to))}\n`);
          return;
        }
        const done = await unpack(content, to);
        for (const skipped of done.skipped) cli.stderr.write(`berth: left out ${visible(skipped)}\n`);
        cli.stderr.write(`${to}: ${done.files} ${done.files === 1 ? 'file' : 'files'}, ${bytes(done.bytes)}\n`);
      });
    });
}

async function reading(
  cli: Cli,
  command: Command,
  { name, attempt }: { readonly name: string; readonly attempt: string | undefined },
  use: (content: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const number = attempt === undefined ? undefined : parseInteger('--attempt', attempt, { min: 1, max: 16 });
  const { client, project } = await openSession(cli, command);
  const query = { project, ...(number === undefined ? {} : { attempt: number }) };
  const signal = cli.interruption();
  try {
    await attempting(`read the artifacts of job "${name}"`, () => use(client.jobArtifacts(name, query, signal)), {
      NotFound: `see: berth job ls, berth job show ${name}`,
    });
  } catch (error) {
    throw signal.aborted ? new Interrupted() : error;
  }
}

async function save(content: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  let size = 0;
  try {
    const pieces = content[Symbol.asyncIterator]();
    let next = await pieces.next(); // a refusal comes before a file is made
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o644);
    try {
      for (; !next.done; next = await pieces.next()) {
        await file.writeFile(next.value);
        size += next.value.byteLength;
      }
    } finally {
      await file.close();
    }
    return size;
  } catch (error) {
    throw writeFailure(error, `write to ${path}`);
  }
}
