// What "berth agent" and "berth agent join" share: options, configuration, and the agent until it is stopped.

import { hostname } from 'node:os';
import type { Command } from 'commander';
import type { AgentConfig } from '../agent/config.ts';
import type { Cli } from '../cli/cli.ts';
import { ApiError, errorCodes } from '../api/errors.ts';
import { attempting, CommandError } from '../cli/exit-codes.ts';
import { collect, parseLabels } from '../cli/options/units.ts';
import { processConfig } from './process-config.ts';
import { tellSupervisor } from './tell-supervisor.ts';
import { untilAborted } from '../base/concurrency/until-aborted.ts';

export interface AgentFlags {
  readonly config?: string;
  readonly name?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly insecureHttp?: true;
  readonly dataDir?: string;
  readonly driver: readonly string[];
  readonly accelerator?: string;
  readonly label: readonly string[];
  readonly publishAddress?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

/** Of `berth agent` and `berth agent join`. */
export function withAgentOptions(command: Command): Command {
  return command
    .option('--config <file>', 'YAML file; each key is also a variable BERTH_AGENT_* (BERTH_AGENT_CONFIG)')
    .option('--name <name>', "name of the host; default: the machine's host name, or the name with which it has joined")
    .option('--token-file <file>', "file that holds this host's token: berth host token NAME")
    .option('--ca <file>', 'PEM file of authorities to trust for https:, besides those that Node trusts')
    .option('--insecure-http', 'send the token to other machines over plain HTTP, where it can be read')
    .option('--data-dir <directory>', 'absolute; default: /var/lib/berth/agent')
    .option('--driver <driver>', 'berth driver ls shows them; may be repeated; default: qemu', collect, [])
    .option('--accelerator <accelerator>', 'for virtual machines: auto, kvm or tcg; default: auto')
    .option('-l, --label <key=value>', 'label set when the host first registers; may be repeated', collect, [])
    .option('--publish-address <address>', "address that guests' ports listen on; default: 127.0.0.1")
    .option('--log-level <level>', 'debug, info, warn, error or silent; default: info')
    .option('--log-format <format>', 'auto, text or json; default: auto, which is text on a terminal and else JSON');
}

/** What is not configured is as this host has joined with it. */
export async function agentConfig(cli: Cli, flags: AgentFlags, server: string | undefined): Promise<AgentConfig> {
  const [{ AgentConfig: schema }, { readIdentity }] = await Promise.all([
    import('../agent/config.ts'),
    import('../agent/enrolment/identity-file.ts'),
  ]);
  const { config: file, name, tokenFile, ca, insecureHttp, dataDir, driver, accelerator, label } = flags;
  const { publishAddress, logLevel, logFormat } = flags;
  const read = (defaults: Readonly<Record<string, unknown>>): Promise<AgentConfig> =>
    processConfig(cli, schema, {
      file,
      flags: {
        ...{ serverUrl: server, hostName: name, tokenFile, ca, insecureHttp, dataDirectory: dataDir },
        drivers: driver.length === 0 ? undefined : [...driver],
        accelerator,
        labels: label.length === 0 ? undefined : parseLabels('--label', label),
        ...{ publishAddress, logLevel, logFormat },
      },
      defaults: { hostName: hostNameOf(hostname()), ...defaults },
      prefix: 'BERTH_AGENT_',
      variables: libvirtVariables,
    });
  const { dataDirectory } = await read({});
  const identity = await attempting('read who this agent is', () => readIdentity(dataDirectory));
  return identity === undefined ? read({}) : read({ hostName: identity.hostName, serverUrl: identity.serverUrl });
}

/** Until it is stopped. Throws when it cannot start, or cannot go on. */
export async function runAgent(cli: Cli, config: AgentConfig): Promise<void> {
  const [{ startAgent }, { systemLogger }] = await Promise.all([
    import('../agent/run.ts'),
    import('../base/system.ts'),
  ]);
  const stopped = cli.interruption();
  const agent = await attempting(`start the agent of host "${config.hostName}"`, () =>
    startAgent(config, { log: systemLogger(config.logLevel, config.logFormat) }),
  );
  await tellSupervisor(cli);
  const failure = await Promise.race([agent.failed, untilAborted(stopped)]);
  await agent.close();
  if (failure) throw told(failure);
}

/** Variables without the prefix, which users set for all programs that use libvirt on a machine. */
export const libvirtVariables = {
  LIBVIRT_URI: 'BERTH_AGENT_LIBVIRT_URI',
  LIBVIRT_NETWORK: 'BERTH_AGENT_LIBVIRT_NETWORK',
};

/**
 * A permanent refusal by the control plane is not an internal error, and has its own exit code: supervisors need not
 * restart the agent.
 */
export function told(failure: Error): Error {
  const { cause, message } = failure;
  return cause instanceof ApiError ? new CommandError(errorCodes[cause.code].exitCode, message, { cause }) : failure;
}

/** A machine's name as a host's name: `Build-1.example.org` → `build-1`. */
export function hostNameOf(machine: string): string {
  const label = (machine.split('.')[0] ?? '').toLowerCase().replace(/[^a-z0-9-]+/g, '-');
  return (
    label
      .replace(/^-+|-+$/g, '')
      .slice(0, 63)
      .replace(/-+$/, '') || 'host-1'
  );
}
