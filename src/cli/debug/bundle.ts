// `berth debug bundle FILE`: what someone needs who helps from afar, in one archive: versions, readiness, metrics, hosts, the queue, events
// and the consistency check. All of it comes from the API, whose lists show no secrets; values of environments and user data are not in it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { describeError } from '../../base/log.ts';
import type { Cli } from '../cli.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { openSession, type Session } from '../session.ts';

interface Part {
  readonly file: string;
  readonly path: string;
  readonly method?: 'POST';
  readonly body?: unknown;
}

const parts: readonly Part[] = [
  { file: 'version.json', path: '/v1/version' },
  { file: 'ready.json', path: '/readyz?verbose' },
  { file: 'metrics.txt', path: '/metrics' },
  { file: 'hosts.json', path: '/v1/hosts?limit=5000' },
  { file: 'usage.json', path: '/v1/usage?limit=1000' },
  { file: 'queue.json', path: '/v1/queue?limit=200' },
  { file: 'events.json', path: '/v1/events?limit=1000' },
  { file: 'workloads.json', path: '/v1/workloads?limit=1000' },
  { file: 'verify.json', path: '/v1/verify', method: 'POST', body: {} },
];

export function debugCommand(cli: Cli): Command {
  return new Command('debug').description('Collect information for troubleshooting').addCommand(bundleCommand(cli));
}

function bundleCommand(cli: Cli): Command {
  return new Command('bundle')
    .description('Write an archive with the state of the fleet and of one server, without secrets')
    .argument('<file>', 'the archive to write: berth-debug.tar.gz')
    .addHelpText('after', '\nThe archive names hosts, projects and instances. Look at it before you send it to others.')
    .action(async (file: string, _: object, command: Command) => {
      const session = await openSession(cli, command);
      const directory = await mkdtemp(join(tmpdir(), 'berth-debug-'));
      try {
        const missing = await collect(session, directory, cli.version);
        const code = await cli.runProgram('tar', ['-czf', resolve(file), '-C', directory, '.']);
        if (code !== 0) throw new CommandError(exitCodes.badOutcome, `tar ended with code ${code}`);
        for (const each of missing) cli.stderr.write(`${each}\n`);
        cli.stdout.write(`${file}: ${parts.length - missing.length} of ${parts.length} parts\n`);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });
}

/** Answers what could not be had, and why: a part that is refused does not keep the others back. */
async function collect({ client }: Session, directory: string, version: string): Promise<readonly string[]> {
  await writeFile(join(directory, 'client.json'), `${JSON.stringify({ version })}\n`);
  const missing: string[] = [];
  for (const { file, path, method, body } of parts) {
    try {
      const call = { ...(method === undefined ? {} : { method }), ...(body === undefined ? {} : { body }) };
      await writeFile(join(directory, file), await (await client.request(path, call)).text());
    } catch (error) {
      missing.push(`${file} is missing: ${describeError(error)}`);
      await writeFile(join(directory, `${file}.missing`), `${describeError(error)}\n`);
    }
  }
  return missing;
}
