// `berth stop`, `start` and `restart`: what the owner wants an instance's power to be. The guest's disk stays.

import { Command } from 'commander';
import { errorCodes } from '../api/errors.ts';
import type { Instance } from '../api/resources/instance.ts';
import type { Cli } from './cli.ts';
import { attempting, CommandError } from './exit-codes.ts';
import { conditionOf } from './instance-view.ts';
import { replace } from './replace.ts';
import { forEachName, joined } from './rm.ts';
import { openSession, type Session } from './session.ts';
import { parseDurationMs } from './units.ts';
import { untilReady, untilStopped, waitForInstance, waitForResource } from './wait.ts';

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
        const { metadata, already } = await want(session, { verb, name, powerState });
        const judge = verb === 'stop' ? untilStopped(name) : untilReady(name);
        if (wait) await waitForInstance(cli, session, { id: metadata.id, name, judge, timeoutMs });
        cli.stdout.write(`${metadata.name} ${already ? alreadyWords[verb] : doneWord(verb, wait === true)}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

/** `already`: it was wanted so, and had become so; nothing was changed. Only to stop one it need not be startable. */
async function want(
  { client, project }: Session,
  { verb, name, powerState }: { verb: 'stop' | 'start' | 'restart'; name: string; powerState: 'running' | 'stopped' },
): Promise<Pick<Instance, 'metadata'> & { readonly already: boolean }> {
  let already = false;
  const { metadata } = await attempting(
    `${verb} instance "${name}"`,
    () =>
      replace(client, {
        kind: 'instance',
        name,
        project,
        change(current) {
          if (verb !== 'stop') assertStartable(current);
          already = verb !== 'restart' && isSo(current, powerState); // that is two wishes, each said
          return already ? undefined : { ...current.spec, powerState };
        },
      }),
    { NotFound: '"berth ps" shows the instances' },
  );
  return { metadata, already };
}

const alreadyWords = { stop: 'is stopped already', start: 'runs already' } as const;

/** Wanted so, and become so: nothing is to be done. */
function isSo({ spec, status }: Instance, powerState: 'running' | 'stopped'): boolean {
  return spec.powerState === powerState && status.phase === (powerState === 'running' ? 'Running' : 'Stopped');
}

/** Off, then on: two wishes, one after the other. Who ends it between the two has an instance that is off, and is told so. */
export function restartCommand(cli: Cli): Command {
  return new Command('restart')
    .description('Power instances off and on again, keeping their disks')
    .argument('<instance...>')
    .option('-w, --wait', 'wait until they have booted')
    .option('-t, --timeout <duration>', 'give up after 90s, 5m: of each, to be off, and with --wait to boot')
    .action(async (names: readonly string[], { wait, timeout }: PowerOptions, command: Command) => {
      const session = await openSession(cli, command);
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const failures = await forEachName(cli, names, async (given) => {
        const { id, name } = (await want(session, { verb: 'restart', name: given, powerState: 'stopped' })).metadata;
        const stays = `it is being stopped, and stays off; then: berth start ${name}`;
        await waitForResource(cli, session, {
          kind: 'instance',
          id,
          name,
          judge: untilStopped(name),
          timeoutMs,
          interruptedAdvice: stays,
          adviceAfter: () => stays,
        });
        await want(session, { verb: 'restart', name, powerState: 'running' });
        if (wait) await waitForInstance(cli, session, { id, name, judge: untilReady(name), timeoutMs });
        cli.stdout.write(`${name} ${doneWord('start', wait === true)}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function doneWord(verb: 'stop' | 'start', waited: boolean): string {
  if (verb === 'stop') return waited ? 'stopped' : 'is being stopped';
  return waited ? 'is ready' : 'is being started';
}

/** Throws `CommandError` for a guest that ended by itself: nothing would come of it, ever. */
function assertStartable({ metadata, spec, status }: Instance): void {
  const { phase } = status;
  if (phase !== 'Exited' && !(phase === 'Failed' && spec.restartPolicy === 'Never')) return;
  const ended = phase === 'Exited' ? 'its guest has powered itself off' : 'it has failed';
  const why = conditionOf(status.conditions, 'Running')?.message;
  const { name } = metadata;
  throw new CommandError(
    errorCodes.Conflict.exitCode,
    `cannot start instance "${name}": ${ended}${why === undefined || why === '' ? '' : ` (${why})`}, and only stopped instances start again`,
    { advice: `run a new one; or "berth rm ${name} --wait", then "berth run ${spec.image} --name ${name}"` },
  );
}
