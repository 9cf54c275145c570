// `berth stop`, `start`, `restart`, `suspend` and `resume`: change an instance's power state. The guest's disk is kept.

import { Command, Option } from 'commander';
import { errorCodes } from '../../api/errors.ts';
import type { Instance, PowerState } from '../../api/resources/instance.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, usageError } from '../exit-codes.ts';
import { replace } from '../replace.ts';
import { forEachName, joined } from './rm.ts';
import { openSession, type Session } from '../session.ts';
import { parseDurationMs } from '../options/units.ts';
import {
  type Judge,
  untilReady,
  untilRunning,
  untilSaved,
  untilStopped,
  untilSuspended,
  waitForInstance,
} from './wait.ts';
import { seeInstances } from './instance-advice.ts';

interface PowerOptions {
  readonly toDisk?: true;
  readonly wait?: true;
  readonly timeout?: string;
}

type Verb = 'stop' | 'start' | 'suspend' | 'resume';

interface Words {
  readonly powerState: PowerState;
  readonly description: string;
  /** What the command waits for. */
  readonly waits: string;
  readonly judge: (name: string) => Judge<'instance', Instance>;
  readonly already: string;
  readonly asked: string;
  readonly waited: string;
}

const words: Readonly<Record<Verb, Words>> = {
  stop: {
    powerState: 'stopped',
    description: 'Power instances off, keeping their disks',
    waits: 'wait until they are off',
    judge: untilStopped,
    already: 'is stopped already',
    asked: 'is being stopped',
    waited: 'stopped',
  },
  start: {
    powerState: 'running',
    description: 'Start instances that are stopped or have ended, with their disks',
    waits: 'wait until they have booted',
    judge: untilReady,
    already: 'runs already',
    asked: 'is being started',
    waited: 'is ready',
  },
  suspend: {
    powerState: 'suspended',
    description: 'Suspend running instances, keeping their memory, in memory or on disk',
    waits: 'wait until they are suspended',
    judge: untilSuspended,
    already: 'is suspended already',
    asked: 'is being suspended',
    waited: 'is suspended',
  },
  resume: {
    powerState: 'running',
    description: 'Resume suspended instances',
    waits: 'wait until they run again',
    judge: untilRunning,
    already: 'runs already',
    asked: 'is being resumed',
    waited: 'runs again',
  },
};

export function stopCommand(cli: Cli): Command {
  return new Command('stop')
    .description(words.stop.description)
    .argument('<instance...>')
    .option('--grace <duration>', graceHelp)
    .addOption(new Option('-w, --wait', 'wait until they are off').hideHelp()) // as it does
    .option('--no-wait', 'return without waiting')
    .option('-t, --timeout <duration>', 'time limit of the wait: 90s, 5m; default: 30s after the grace')
    .action(async (names: readonly string[], options: StopOptions, command: Command) => {
      const session = await openSession(cli, command);
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      const grace = graceOf(options);
      const asked = new Map<string, Wanted>();
      // All are requested before the command waits for any: their guests stop in parallel.
      const refused = await forEachName(cli, names, async (name) => {
        const wanted = await want(session, { verb: 'stop', name, powerState: 'stopped', ...grace });
        if (options.wait !== false && !wanted.already) asked.set(wanted.metadata.name, wanted);
        else cli.stdout.write(`${wanted.metadata.name} ${wanted.already ? words.stop.already : words.stop.asked}\n`);
      });
      const failures = await forEachName(cli, [...asked.keys()], async (name) => {
        const wanted = asked.get(name);
        if (wanted) await untilOff(cli, session, { wanted, timeoutMs });
        cli.stdout.write(`${name} ${words.stop.waited}\n`);
      });
      if (refused.length + failures.length > 0) throw joined([...refused, ...failures], names.length);
    });
}
export const startCommand = (cli: Cli): Command => powerCommand(cli, 'start');
export const suspendCommand = (cli: Cli): Command => powerCommand(cli, 'suspend');
export const resumeCommand = (cli: Cli): Command => powerCommand(cli, 'resume');

function powerCommand(cli: Cli, verb: Verb): Command {
  const { powerState, description, waits, judge, already: soAlready, asked, waited } = words[verb];
  const described = new Command(verb).description(description).argument('<instance...>');
  if (verb === 'suspend')
    described.option(
      '--to-disk',
      'write their memory to a file of their host and end their guests, until they are resumed',
    );
  return described
    .option('-w, --wait', waits)
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .action(async (names: readonly string[], { toDisk, wait, timeout }: PowerOptions, command: Command) => {
      const session = await openSession(cli, command);
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const failures = await forEachName(cli, names, async (name) => {
        const { metadata, already } = await want(session, { verb, name, powerState, toDisk });
        const until = toDisk ? untilSaved(name) : judge(name);
        if (wait) await waitForInstance(cli, session, { id: metadata.id, name, judge: until, timeoutMs });
        cli.stdout.write(`${metadata.name} ${already ? soAlready : wait ? waited : asked}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

interface StopOptions {
  readonly grace?: string;
  readonly wait?: boolean;
  readonly timeout?: string;
}

const graceHelp = "time a guest has to power off before it is killed: 30s, 0s; default: the instance's, 30s";
/** Time for the host to receive the request and report the end. */
const marginMs = 30_000;

function graceOf({ grace }: { readonly grace?: string }): { readonly stopGraceMs?: number } {
  if (grace === undefined) return {};
  const stopGraceMs = parseDurationMs('--grace', grace);
  if (stopGraceMs > graceMsMax) throw usageError(`--grace cannot be "${grace}"`, 'write at most ten minutes: 10m');
  return { stopGraceMs };
}

const graceMsMax = 600_000;

/** Reports when the guest was forced off: unwritten data is lost. */
async function untilOff(
  cli: Cli,
  session: Session,
  {
    wanted: { metadata, spec },
    timeoutMs = spec.stopGraceMs + marginMs,
    ...advice
  }: {
    readonly wanted: Wanted;
    readonly timeoutMs?: number | undefined;
    readonly interruptedAdvice?: string;
    readonly adviceAfter?: () => string;
  },
): Promise<void> {
  const { id, name } = metadata;
  const { status } = await waitForInstance(cli, session, { id, name, judge: untilStopped(name), timeoutMs, ...advice });
  if (status.guest?.reason === 'StopForced')
    cli.stderr.write(`warning: ${name}: ${status.guest.message ?? 'the guest was killed'}\n`);
}

/** `already`: the state was requested and reached before; nothing was changed. */
type Wanted = Pick<Instance, 'metadata' | 'spec'> & { readonly already: boolean };

async function want(
  { client, project }: Session,
  {
    verb,
    name,
    powerState,
    toDisk,
    ...changes
  }: {
    verb: Verb | 'restart';
    name: string;
    powerState: PowerState;
    readonly stopGraceMs?: number;
    readonly toDisk?: true | undefined;
  },
): Promise<Wanted> {
  let already = false;
  const { metadata, spec } = await attempting(
    `${verb} instance "${name}"`,
    () =>
      replace(client, {
        kind: 'instance',
        name,
        project,
        change(current) {
          if (verb === 'suspend' || verb === 'resume') assertUp(current, verb);
          // A restart consists of two changes, each reported.
          already = verb !== 'restart' && isSo(current, powerState) && (!toDisk || isSaved(current));
          if (already) return undefined;
          const startsAgain = verb !== 'resume' && powerState === 'running' && hasEnded(current);
          return {
            ...current.spec,
            powerState,
            ...suspendTo(current, verb, toDisk),
            ...changes,
            ...(startsAgain ? { starts: (current.spec.starts ?? 0) + 1 } : {}),
          };
        },
      }),
    { NotFound: seeInstances },
  );
  return { metadata, spec, already };
}

const isSaved = ({ status }: Instance): boolean => status.guest?.saved === true;

/** The last time may have been to disk. */
function suspendTo(
  { spec }: Instance,
  verb: Verb | 'restart',
  toDisk: true | undefined,
): Pick<Instance['spec'], 'suspendTo'> {
  if (toDisk) return { suspendTo: 'disk' };
  return verb === 'suspend' && spec.suspendTo !== undefined ? { suspendTo: 'memory' } : {};
}

const phaseWhen = { running: 'Running', suspended: 'Suspended', stopped: 'Stopped' } as const;

/** Whether the state is requested and reached, so that nothing has to be done. */
function isSo({ spec, status }: Instance, powerState: PowerState): boolean {
  return spec.powerState === powerState && status.phase === phaseWhen[powerState];
}

/** Its guest ended by itself: only an explicit order starts it again. */
function hasEnded({ status }: Instance): boolean {
  return status.phase === 'Exited' || status.phase === 'Failed';
}

/**
 * Off, then on: two changes, one after the other. Interrupting in between leaves the instance off, which the message
 * says.
 */
export function restartCommand(cli: Cli): Command {
  return new Command('restart')
    .description('Power instances off and on again, keeping their disks')
    .argument('<instance...>')
    .option('-w, --wait', 'wait until they have booted')
    .option('--grace <duration>', graceHelp)
    .option('-t, --timeout <duration>', 'time limit for each to power off, and with --wait to boot: 90s, 5m')
    .action(async (names: readonly string[], options: PowerOptions & StopOptions, command: Command) => {
      const { wait, timeout } = options;
      const session = await openSession(cli, command);
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const grace = graceOf(options);
      const failures = await forEachName(cli, names, async (given) => {
        const wanted = await want(session, { verb: 'restart', name: given, powerState: 'stopped', ...grace });
        const { id, name } = wanted.metadata;
        const stays = `it is being stopped, and stays off; then: berth start ${name}`;
        await untilOff(cli, session, { wanted, timeoutMs, interruptedAdvice: stays, adviceAfter: () => stays });
        await want(session, { verb: 'restart', name, powerState: 'running' });
        if (wait) await waitForInstance(cli, session, { id, name, judge: untilReady(name), timeoutMs });
        cli.stdout.write(`${name} ${wait ? words.start.waited : words.start.asked}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

/** Throws `CommandError` for an instance without memory to keep or to resume. */
function assertUp({ metadata, spec, status }: Instance, verb: 'suspend' | 'resume'): void {
  const { phase } = status;
  const { name } = metadata;
  if (phase === 'Running' || phase === 'Suspended') return;
  if (verb === 'resume' && spec.powerState === 'suspended') return; // it failed, or is being placed again, in the meantime
  throw new CommandError(
    errorCodes.Conflict.exitCode,
    verb === 'suspend'
      ? `cannot suspend instance "${name}": it is ${phase}, and only running instances can be suspended`
      : `cannot resume instance "${name}": it is ${phase}, and not suspended`,
    { advice: phase === 'Stopped' ? `"berth start ${name}" starts it` : `"berth explain ${name}" says why` },
  );
}
