// The two processes that have a configuration, and how `berth config` reads the configuration of each. It starts nothing.

import { hostname } from 'node:os';
import type { TObject } from 'typebox';
import { AgentConfig } from '../../agent/config.ts';
import { readIdentity } from '../../agent/enrolment/identity-file.ts';
import type { ConfigOrigin } from '../../api/config.ts';
import { isRecord } from '../../base/is-record.ts';
import { system } from '../../base/system.ts';
import type { Cli } from '../../cli/cli.ts';
import { attempting } from '../../cli/exit-codes.ts';
import { policyOf, speaksTls } from '../../server/checked-config.ts';
import { ServerConfig } from '../../server/config.ts';
import { hostNameOf, libvirtVariables } from '../agent-process.ts';
import { imageMapIn } from '../default-image-map.ts';
import { configPath, intakeVariables, whatConfigNames } from '../intake-options.ts';
import { processConfigWithOrigins } from '../process-config.ts';

export type Role = 'server' | 'agent';

export interface Resolved {
  readonly config: Readonly<Record<string, unknown>>;
  readonly origins: ReadonlyMap<string, ConfigOrigin>;
}

export const roles: Readonly<Record<Role, { readonly schema: TObject; readonly prefix: string }>> = {
  server: { schema: ServerConfig, prefix: 'BERTH_SERVER_' },
  agent: { schema: AgentConfig, prefix: 'BERTH_AGENT_' },
};

/** As `berth server` resolves it without flags. Throws `CommandError` that names the invalid key and its source. */
export async function resolveServer(cli: Pick<Cli, 'environment'>, path: string | undefined): Promise<Resolved> {
  const prefix = roles.server.prefix;
  const usual = await imageMapIn(system.workingDirectory());
  const named = await whatConfigNames(path, { imageMap: undefined });
  const { config, origins } = await processConfigWithOrigins(
    { environment: { ...cli.environment, [`${prefix}CONFIG`]: undefined } },
    ServerConfig,
    {
      file: named.file,
      flags: { imageMap: named.imageMap },
      defaults: usual === undefined ? {} : { imageMap: usual },
      prefix,
      variables: { ORCH_CONFIG: `${prefix}IMAGE_MAP`, ...intakeVariables(prefix) },
    },
  );
  await attempting('accept the configuration', async () => {
    policyOf(config);
    speaksTls(config);
  });
  return { config, origins };
}

/** As `berth agent` resolves it without flags: what the host joined with takes the place of defaults. */
export async function resolveAgent(cli: Pick<Cli, 'environment'>, path: string | undefined): Promise<Resolved> {
  const read = (defaults: Readonly<Record<string, unknown>>) =>
    processConfigWithOrigins(cli, AgentConfig, {
      file: path,
      flags: {},
      defaults: { hostName: hostNameOf(hostname()), ...defaults },
      prefix: roles.agent.prefix,
      variables: libvirtVariables,
    });
  const first = await read({});
  const identity = await attempting('read who this agent is', () => readIdentity(first.config.dataDirectory));
  return identity === undefined ? first : read({ hostName: identity.hostName, serverUrl: identity.serverUrl });
}

export function resolveRole(role: Role, cli: Cli, given: string | undefined): Promise<Resolved> {
  const path = configPath(cli, given, roles[role].prefix);
  return role === 'server' ? resolveServer(cli, path) : resolveAgent(cli, path);
}

/** Whose file it is, by its keys: of the agent only if the server does not know one that the agent does. */
export function roleOfKeys(value: unknown): Role {
  const keys = isRecord(value) ? Object.keys(value) : [];
  const count = (role: Role): number => keys.filter((key) => Object.hasOwn(roles[role].schema.properties, key)).length;
  return count('agent') > count('server') ? 'agent' : 'server';
}
