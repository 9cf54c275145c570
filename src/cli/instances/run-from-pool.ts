// `berth run --from-pool`: what a claim of a warm guest may say, and the claim itself.

import type { Command } from 'commander';
import type { Instance } from '../../api/resources/instance.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { type LifetimeOptions, lifetimeOf } from '../options/lifetime-options.ts';
import { parseLabels } from '../options/units.ts';
import type { Session } from '../session.ts';

export interface ClaimOptions extends LifetimeOptions {
  readonly fromPool?: string;
  readonly warmOnly?: true;
  readonly label: readonly string[];
  readonly idempotencyKey?: string;
}

/** The guest runs already: what concerns its start cannot be chosen any more. */
const allowed: ReadonlySet<string> = new Set([
  ...['fromPool', 'warmOnly', 'label', 'ttl', 'expires'],
  ...['idempotencyKey', 'wait', 'timeout', 'output'],
]);

export function claimFromPool(session: Session, options: ClaimOptions, command: Command): Promise<Instance> {
  const { fromPool: pool = '', warmOnly, idempotencyKey } = options;
  for (const option of command.options) {
    const name = option.attributeName();
    if (command.getOptionValueSource(name) !== 'cli' || allowed.has(name)) continue;
    const advice =
      name === 'name'
        ? 'the instance keeps the name that it has; give a --label'
        : 'its guest runs already; leave it out';
    throw usageError(`${option.long ?? option.flags} is not for --from-pool`, advice);
  }
  const body = {
    metadata: { labels: parseLabels('--label', options.label) },
    spec: { ...lifetimeOf(options), ...(warmOnly ? { coldStart: false } : {}) },
  };
  const { project } = session;
  return attempting(
    `claim a guest of warm pool "${pool}"`,
    () =>
      session.client.claimWarmGuest(pool, body, {
        project,
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      }),
    {
      NotFound: '"berth warm-pool ls" shows the warm pools',
      ...(warmOnly ? { Conflict: 'without --warm-only an instance is created' } : {}),
    },
  );
}
