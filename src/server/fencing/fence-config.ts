// The fencing hook of a server's configuration.

import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { ApiError } from '../../api/errors.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import type { FenceHook } from './fencing.ts';

const closed = { additionalProperties: false } as const;

export const FenceConfig = Type.Object(
  {
    command: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
        minItems: 1,
        maxItems: 64,
        description: 'a program and its arguments; "off HOST ADDRESS" or "status HOST ADDRESS" follow',
      }),
    ),
    url: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s]+$',
        maxLength: 2048,
        description: 'POST powers a host off, GET reads {"power": "off"}; {host} and {address} are replaced',
      }),
    ),
    tokenFile: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'file with the bearer token for url' }),
    ),
    timeoutMs: Type.Integer({ default: 60_000, minimum: 1_000, maximum: 3_600_000, description: 'of each call' }),
  },
  { ...closed, description: 'how hosts are powered off that are down: docs/hosts.md; one of command and url' },
);
export type FenceConfig = Static<typeof FenceConfig>;

/** Undefined: not configured, and nothing of it is loaded. Throws `InvalidRequest`. */
export async function readFenceHook(config: FenceConfig | undefined, clock: Clock): Promise<FenceHook | undefined> {
  if (config === undefined) return undefined;
  const { command, url, tokenFile, timeoutMs } = config;
  if ((command === undefined) === (url === undefined))
    throw new ApiError('InvalidRequest', 'fencing needs one of command and url', { field: 'fencing' });
  if (tokenFile !== undefined && url === undefined)
    throw new ApiError('InvalidRequest', 'fencing.tokenFile is for fencing.url', { field: 'fencing.tokenFile' });
  if (command !== undefined) return (await import('./command-hook.ts')).commandHook(command, timeoutMs);
  const token = tokenFile === undefined ? undefined : await tokenIn(tokenFile);
  const { httpHook } = await import('./http-hook.ts');
  return httpHook(clock, { url: url ?? '', timeoutMs, ...(token === undefined ? {} : { token }) });
}

async function tokenIn(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (cause) {
    const field = 'fencing.tokenFile';
    throw new ApiError('InvalidRequest', `${field}: ${describeError(cause)}`, { field, cause });
  }
}
