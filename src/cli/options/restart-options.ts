// The flags of a restart policy: what happens when a guest ends without a request.

import { type Command, Option } from 'commander';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { usageError } from '../exit-codes.ts';
import { oneOf } from './place-options.ts';
import { parseDurationMs, parseInteger } from './units.ts';

export interface RestartOptions {
  readonly restart?: string;
  readonly restartPolicy?: string;
  readonly restartDelay?: string;
  readonly restartDelayMax?: string;
  readonly restartLimit?: string;
  readonly restartDisk?: string;
}

/** The spellings of Docker and systemd, and those of the API. */
const words: Readonly<Record<string, InstanceSpec['restartPolicy']>> = {
  never: 'Never',
  'on-failure': 'OnFailure',
  always: 'Always',
  no: 'Never',
  Never: 'Never',
  OnFailure: 'OnFailure',
  Always: 'Always',
};

export function withRestartOptions(command: Command): Command {
  return command
    .option('--restart <policy>', 'never, on-failure or always; default: never')
    .addOption(new Option('--restart-policy <policy>', 'the older name of --restart').hideHelp())
    .option('--restart-delay <duration>', 'before the first restart, doubled for each in a row: 1s, 1m')
    .option('--restart-delay-max <duration>', 'maximum delay; default: 5m')
    .option('--restart-limit <number>', 'restarts in a row; default: no limit')
    .option('--restart-disk <disk>', 'fresh: a new disk on any host; kept: its own, on the same host; default: fresh');
}

export function restartOf(options: RestartOptions): Partial<Pick<InstanceSpec, 'restartPolicy' | 'restart'>> {
  const { restartDelay, restartDelayMax, restartLimit, restartDisk } = options;
  const how: NonNullable<InstanceSpec['restart']> = {
    ...(restartDelay === undefined ? {} : { delayMs: parseDurationMs('--restart-delay', restartDelay) }),
    ...(restartDelayMax === undefined ? {} : { delayMsMax: parseDurationMs('--restart-delay-max', restartDelayMax) }),
    ...(restartLimit === undefined
      ? {}
      : { limit: parseInteger('--restart-limit', restartLimit, { min: 0, max: 1_000_000 }) }),
    ...(restartDisk === undefined ? {} : { disk: oneOf('--restart-disk', restartDisk, ['fresh', 'kept'] as const) }),
  };
  const policy = policyOf(options);
  return {
    ...(policy === undefined ? {} : { restartPolicy: policy }),
    ...(Object.keys(how).length === 0 ? {} : { restart: how }),
  };
}

function policyOf({ restart, restartPolicy }: RestartOptions): InstanceSpec['restartPolicy'] | undefined {
  if (restart !== undefined && restartPolicy !== undefined)
    throw usageError('give only one of --restart and --restart-policy, which is its older name');
  if (restartPolicy !== undefined) return oneOfWords('--restart-policy', restartPolicy);
  return restart === undefined ? undefined : oneOfWords('--restart', restart);
}

function oneOfWords(option: string, text: string): InstanceSpec['restartPolicy'] {
  const found = Object.hasOwn(words, text) ? words[text] : undefined;
  if (found === undefined)
    throw usageError(`${option} cannot be "${text}"`, 'choose one of: never, on-failure, always');
  return found;
}
