// The flags that say what happens to an instance when its host is lost.

import type { Command } from 'commander';
import { OnHostLoss, onHostLossHelp } from '../../api/resources/host-state.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { oneOf } from './place-options.ts';

export interface LossOptions {
  readonly onHostLoss?: string;
  readonly selfStop?: true;
}

export function withLossOptions(command: Command): Command {
  return command
    .option('--on-host-loss <rule>', `when its host is down: ${onHostLossHelp}; default: the rule of its pool`)
    .option('--self-stop', 'its host stops it when no control plane answers, so that it can be replaced safely');
}

export function lossOf({ onHostLoss, selfStop }: LossOptions): Partial<InstanceSpec> {
  return {
    ...(onHostLoss === undefined ? {} : { onHostLoss: oneOf('--on-host-loss', onHostLoss, OnHostLoss.enum) }),
    ...(selfStop ? { selfStop: true } : {}),
  };
}
