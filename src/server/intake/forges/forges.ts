// The forges of a control plane: read from its configuration, and wired to its routes.

import type { Logger } from '../../../base/log.ts';
import type { Decider } from '../../decide.ts';
import type { Route } from '../../http/route.ts';
import { askHead } from './forge-api.ts';
import { type ConfiguredHook, type HookConfig, readHooks } from './forge-config.ts';
import { hookRoutes } from './hook-routes.ts';

export interface ForgeParts {
  readonly hooks: readonly ConfiguredHook[];
  readonly fetch: typeof fetch;
  /** Where people reach this server. */
  readonly externalUrl?: string;
}

/** Undefined when none is configured. Throws `InvalidRequest` with the field. */
export async function readForges(
  { forges, externalUrl }: { readonly forges: readonly HookConfig[]; readonly externalUrl?: string },
  {
    environment,
    fetch,
  }: Pick<ForgeParts, 'fetch'> & { readonly environment: Readonly<Record<string, string | undefined>> },
): Promise<ForgeParts | undefined> {
  if (forges.length === 0) return undefined;
  const hooks = await readHooks(forges, environment);
  return { hooks, fetch, ...(externalUrl === undefined ? {} : { externalUrl }) };
}

export function forgeRoutes(
  forges: ForgeParts | undefined,
  { decider, log }: { readonly decider: Decider; readonly log: Logger },
): Route[] {
  const { hooks, fetch } = forges ?? { hooks: [], fetch: noFetch };
  const { clock } = decider;
  return hookRoutes({ decider, hooks, log, askHead: (hook, event) => askHead({ fetch, clock }, hook, event) });
}

/** Without hooks no forge is asked. */
const noFetch: typeof fetch = () => Promise.reject(new Error('no forge is configured'));
