// `berth agent`: runs the host process until it is stopped. The guests keep running without it.

import { hostname } from 'node:os';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { ApiError, errorCodes } from '../api/errors.ts';
import { attempting, CommandError } from '../cli/exit-codes.ts';
import { collect, parseLabels } from '../cli/options/units.ts';
import { processConfig } from './process-config.ts';
import { untilAborted } from './until-aborted.ts';

interface AgentFlags {
  readonly config?: string;
  readonly server?: string;
  readonly name?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly dataDir?: string;
  readonly driver: readonly string[];
  readonly accelerator?: string;
  readonly label: readonly string[];
  readonly publishAddress?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

export function agentCommand(cli: Cli): Command {
  return new Command('agent')
    .description('Run the agent of a host')
    .option('--config <file>', 'YAML file; each key is also a variable BERTH_AGENT_* (BERTH_AGENT_CONFIG)')
    .option('--server <url>', 'default: http://127.0.0.1:7070')
    .option('--name <name>', "name of the host; default: the machine's host name")
    .option('--token-file <file>', "file that holds this host's token: berth host token NAME")
    .option('--ca <file>', 'PEM file of authorities to trust for https:, besides those that Node trusts')
    .option('--data-dir <directory>', 'absolute; default: /var/lib/berth/agent')
    .option('--driver <driver>', 'berth driver ls shows them; may be repeated; default: qemu', collect, [])
    .option('--accelerator <accelerator>', 'for virtual machines: auto, kvm or tcg; default: auto')
    .option('-l, --label <key=value>', 'label set when the host first registers; may be repeated', collect, [])
    .option('--publish-address <address>', "address that guests' ports listen on; default: 127.0.0.1")
    .option('--log-level <level>', 'debug, info, warn, error or silent; default: info')
    .option('--log-format <format>', 'auto, text or json; default: auto, which is text on a terminal and else JSON')
    .action(async (flags: AgentFlags) => {
      const [{ AgentConfig }, { startAgent }, { systemLogger }] = await Promise.all([
        import('../agent/config.ts'),
        import('../agent/run.ts'),
        import('../base/system.ts'),
      ]);
      const {
        config: file,
        server,
        name,
        tokenFile,
        ca,
        dataDir,
        driver,
        accelerator,
        label,
        publishAddress,
        logLevel,
        logFormat,
      } = flags;
      const config = await processConfig(cli, AgentConfig, {
        file,
        flags: {
          serverUrl: server,
          hostName: name,
          tokenFile,
          ca,
          dataDirectory: dataDir,
          drivers: driver.length === 0 ? undefined : [...driver],
          accelerator,
          labels: label.length === 0 ? undefined : parseLabels('--label', label),
          publishAddress,
          logLevel,
          logFormat,
        },
        defaults: { hostName: hostNameOf(hostname()) },
        prefix: 'BERTH_AGENT_',
        variables: libvirtVariables,
      });
      const stopped = cli.interruption();
      const agent = await attempting(`start the agent of host "${config.hostName}"`, () =>
        startAgent(config, { log: systemLogger(config.logLevel, config.logFormat) }),
      );
      const failure = await Promise.race([agent.failed, untilAborted(stopped)]);
      await agent.close();
      if (failure) throw told(failure);
    });
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
