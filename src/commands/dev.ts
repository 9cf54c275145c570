// `berth dev`: a whole fleet on this machine, to try Berth. It writes the context "dev", so that other commands find
// it.

import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { contextFilePath, type LocalContext, useLocalContext } from '../cli/context-file.ts';
import { attempting, usageError } from '../cli/exit-codes.ts';
import { acceleratorFrom, acceleratorHelp } from './accelerator-option.ts';
import {
  checkedIntakeFlags,
  configPath,
  IntakeConfig,
  intakeFlagsOf,
  type IntakeFlags,
  intakeVariables,
  whatConfigNames,
  withIntakeOptions,
} from './intake-options.ts';
import { processConfig } from './process-config.ts';
import type { LocalFleet } from './local-fleet.ts';
import { storeAdvice, tellFailure } from './store-of.ts';
import { collect } from '../cli/options/units.ts';
import { untilAborted } from '../base/concurrency/until-aborted.ts';

interface DevFlags extends IntakeFlags {
  readonly config?: string;
  readonly dataDir: string;
  readonly imageDir: string;
  readonly listen?: string;
  readonly driver: readonly string[];
  readonly accelerator?: string;
  readonly name?: string;
  readonly imageMap?: string;
  readonly logLevel: string;
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export function devCommand(cli: Cli): Command {
  const command = new Command('dev')
    .description('Run control plane and agent in one process, for trying Berth out')
    .option('--config <file>', 'YAML file of limits and of the broker (BERTH_DEV_CONFIG); or an image map')
    .option('--data-dir <directory>', 'directory for all data', '.berth/dev')
    .option('--image-dir <directory>', 'directory for built images: berth image build', '.berth/images')
    .option('--listen <address:port>', 'default: 127.0.0.1:7070, or any free port when that is taken')
    .option('--driver <driver>', 'qemu, libvirt, container or fake; may be repeated; default: qemu', collect, [])
    .option('--accelerator <accelerator>', acceleratorHelp)
    .option('--name <name>', "name of the host; default: the machine's host name")
    .option('--image-map <file>', 'YAML of images and sizes, read at start (ORCH_CONFIG)')
    .option('--log-level <level>', logLevels.join(', '), 'warn');
  return withIntakeOptions(command).action(async (flags: DevFlags) => {
    const logLevel = logLevels.find((level) => level === flags.logLevel);
    if (!logLevel)
      throw usageError(`--log-level cannot be "${flags.logLevel}"`, `choose one of: ${logLevels.join(', ')}`);
    const accelerator = acceleratorFrom(cli, flags.accelerator);
    const { intake, imageMap } = await intakeOf(cli, flags);
    const [{ startLocalFleet }, { systemLogger }] = await Promise.all([
      import('./local-fleet.ts'),
      import('../base/system.ts'),
    ]);
    const stopped = cli.interruption();
    const start = (): Promise<LocalFleet> =>
      startLocalFleet(
        {
          dataDirectory: resolve(flags.dataDir),
          imageDirectory: resolve(flags.imageDir),
          listen: flags.listen,
          drivers: flags.driver.length === 0 ? ['qemu'] : flags.driver,
          accelerator,
          hostName: flags.name,
          libvirtUri: cli.environment['LIBVIRT_URI'] || undefined,
          libvirtNetwork: cli.environment['LIBVIRT_NETWORK'] || undefined,
          imageMap: imageMap ?? (cli.environment['ORCH_CONFIG'] || undefined),
          intake,
        },
        { log: systemLogger(logLevel) },
      );
    const fleet = await tellFailure('start the fleet', () => attempting('start the fleet', start, storeAdvice), {
      Locked: 'or use another directory: --data-dir DIRECTORY',
    });
    let context: LocalContext | undefined;
    try {
      context = await useLocalContext(contextFilePath(cli), 'dev', { url: fleet.url, token: fleet.operatorToken });
      const { current } = context;
      const berth = current ? 'berth' : 'berth --context dev';
      cli.stdout.write(
        `${[
          `server  ${fleet.url}`,
          `host    ${fleet.hostName}`,
          `data    ${resolve(flags.dataDir)}`,
          `context dev${current ? ', now the current one' : ''}; others: berth context ls, berth context use NAME`,
          `look    ${berth} dashboard --open`,
          `try     ${berth} image build tiny && ${berth} run tiny --wait`,
          'Ctrl-C ends it; guests keep running, and the next start finds them.',
        ].join('\n')}\n`,
      );
      const failure = await Promise.race([fleet.failed, untilAborted(stopped)]);
      if (failure) throw failure;
    } finally {
      try {
        const again = await context?.leave();
        if (again !== undefined) cli.stdout.write(`context ${again} is current again\n`);
      } finally {
        await fleet.close();
      }
    }
  });
}

const prefix = 'BERTH_DEV_';

/** Limits and broker, from flags, variables and the file of `--config`. */
async function intakeOf(
  cli: Cli,
  flags: DevFlags,
): Promise<{ readonly intake: IntakeConfig; readonly imageMap: string | undefined }> {
  const named = await whatConfigNames(configPath(cli, flags.config, prefix), { imageMap: flags.imageMap });
  if (named.file === undefined && named.imageMap !== flags.imageMap)
    cli.stderr.write(`${named.imageMap} has the keys of an image map, and is taken as one\n`);
  const intake = await processConfig(
    { environment: { ...cli.environment, [`${prefix}CONFIG`]: undefined } },
    IntakeConfig,
    {
      file: named.file,
      flags: intakeFlagsOf(checkedIntakeFlags(flags)),
      prefix,
      variables: intakeVariables(prefix),
    },
  );
  return { intake, imageMap: named.imageMap };
}
