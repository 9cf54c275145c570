// The flags of a restart policy: what happens when a guest ends without a request.

import type { Command } from 'commander';
import { type InstanceSpec, restartPolicies } from '../../api/resources/instance.ts';
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

/** As people know them from Docker and systemd. */
const words: Readonly<Record<string, InstanceSpec['restartPolicy']>> = {
  no: 'Never',
  never: 'Never',
  'on-failure': 'OnFailure',
  always: 'Always',
};

export function withRestartOptions(command: Command): Command {
  return command
    .option('--restart <policy>', 'never, on-failure or always; default: never')
    .option('--restart-policy <policy>', `${restartPolicies.join(', ')}; default: Never`)
    .option('--restart-delay <duration>', 'before the first restart, doubled for each in a row: 1s, 1m')
    .option('--restart-delay-max <duration>', 'no delay grows beyond this; default: 5m')
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
  if (restartPolicy !== undefined) return oneOf('--restart-policy', restartPolicy, restartPolicies);
  if (restart === undefined) return undefined;
  const found = Object.hasOwn(words, restart) ? words[restart] : undefined;
  if (found === undefined)
    throw usageError(`--restart cannot be "${restart}"`, `choose one of: ${Object.keys(words).join(', ')}`);
  return found;
}
