// `berth stop` and `berth start`: what the owner wants an instance's power to be. The guest's disk stays.

import { Command } from 'commander';
import { ApiError } from '../api/errors.ts';
import type { Instance } from '../api/resources/instance.ts';
import type { Cli } from './cli.ts';
import { attempting } from './exit-codes.ts';
import { forEachName, joined } from './rm.ts';
import { openSession, type Session } from './session.ts';
import { parseDurationMs } from './units.ts';
import { untilReady, untilStopped, waitForInstance } from './wait.ts';

interface PowerOptions {
  readonly wait?: true;
  readonly timeout?: string;
}

export const stopCommand = (cli: Cli): Command =>
  powerCommand(cli, 'stop', 'stopped', 'Power instances off, keeping their disks');
export const startCommand = (cli: Cli): Command =>
  powerCommand(cli, 'start', 'running', 'Power stopped instances on again');

function powerCommand(
  cli: Cli,
  verb: 'stop' | 'start',
  powerState: 'running' | 'stopped',
  description: string,
): Command {
  return new Command(verb)
    .description(description)
    .argument('<instance...>')
    .option('-w, --wait', `wait until they ${verb === 'stop' ? 'are off' : 'have booted'}`)
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .action(async (names: readonly string[], { wait, timeout }: PowerOptions, command: Command) => {
      const session = await openSession(cli, command);
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const failures = await forEachName(cli, names, async (name) => {
        const { metadata } = await attempting(
          `${verb} instance "${name}"`,
          () => setPowerState(session, name, powerState),
          {
            NotFound: '"berth ps" shows the instances',
          },
        );
        const judge = verb === 'stop' ? untilStopped(name) : untilReady(name);
        if (wait) await waitForInstance(cli, session, { id: metadata.id, name, judge, timeoutMs });
        cli.stdout.write(`${metadata.name} ${doneWord(verb, wait === true)}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function doneWord(verb: 'stop' | 'start', waited: boolean): string {
  if (verb === 'stop') return waited ? 'stopped' : 'is being stopped';
  return waited ? 'is ready' : 'is being started';
}

const triesMax = 5;

/** Its status changes all the time, and every change makes our revision old: then it is read again. */
async function setPowerState(
  { client, project }: Session,
  name: string,
  powerState: 'running' | 'stopped',
): Promise<Instance> {
  for (let tries = 1; ; tries++) {
    const { metadata, spec } = await client.get('instance', name, { project });
    try {
      return await client.replace('instance', metadata.name, {
        metadata: { project: metadata.project, labels: metadata.labels, revision: metadata.revision },
        spec: { ...spec, powerState },
      });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'RevisionMismatch') || tries >= triesMax) throw error;
    }
  }
}
