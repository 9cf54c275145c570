// `berth server`: runs the control plane until it is stopped.

import { Command, Option } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { attempting } from '../cli/exit-codes.ts';
import { collect } from '../cli/options/units.ts';
import { defaultImageMap, imageMapIn } from './default-image-map.ts';
import {
  checkedIntakeFlags,
  configPath,
  type IntakeFlags,
  intakeVariables,
  whatConfigNames,
  withIntakeOptions,
} from './intake-options.ts';
import { processConfig } from './process-config.ts';
import { storeAdvice, tellFailure } from './store-of.ts';
import { tellSupervisor } from './tell-supervisor.ts';
import { untilAborted } from '../base/concurrency/until-aborted.ts';

const prefix = 'BERTH_SERVER_';
/** After waiting agents have reconnected. */
const releaseAfterMs = 1_500;

interface ServerFlags extends IntakeFlags {
  readonly config?: string;
  readonly listen?: string;
  readonly advertiseUrl?: string;
  readonly store?: string;
  readonly dataDir?: string;
  readonly newFleet?: true;
  readonly imageMap?: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly tls?: true;
  readonly tlsName?: readonly string[];
  readonly insecureHttp?: true;
  readonly insecure?: true;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

export function serverCommand(cli: Cli): Command {
  const command = new Command('server')
    .description('Run the control plane')
    .option(
      '--config <file>',
      'YAML file; each key is also a variable BERTH_SERVER_* (BERTH_SERVER_CONFIG); or an image map',
    )
    .option('--listen <address:port>', 'default: 127.0.0.1:7070')
    .option('--advertise-url <url>', 'URL of this server for agents and clients, when there are several servers')
    .option('--store <url>', 'sqlite:PATH, postgres://... or etcd://...; default: sqlite:<data-dir>/berth.db')
    .option('--data-dir <directory>', 'absolute; default: /var/lib/berth/server')
    .option('--new-fleet', 'start with an empty fleet although the previous SQLite file is missing')
    .option(
      '--image-map <file>',
      `YAML of images and sizes, read at start (ORCH_CONFIG); default: ${defaultImageMap}, if it is there`,
    )
    .option('--tls-certificate <file>', 'PEM file; serve HTTPS')
    .option('--tls-key <file>', 'PEM file; private key of the certificate')
    .option('--tls', "serve HTTPS with a certificate of the fleet's own authority; default: beyond loopback")
    .option('--tls-name <name>', 'further name or address for that certificate; may be repeated', collect, [])
    .option('--insecure-http', 'serve plain HTTP to other machines, where tokens can be read')
    .addOption(new Option('--insecure', 'the older name of --insecure-http').hideHelp())
    .option('--log-level <level>', 'debug, info, warn, error or silent; default: info')
    .option('--log-format <format>', 'auto, text or json; default: auto, which is text on a terminal and else JSON');
  return withIntakeOptions(command).action(
    async ({ config: given, dataDir, tlsName = [], ...own }: ServerFlags, command: Command) => {
      const { insecureHttp } = command.optsWithGlobals<ServerFlags>(); // `berth` itself may have parsed it
      const flags = { ...own, ...(insecureHttp ? { insecureHttp } : {}) };
      const [
        { ServerConfig },
        { startServer },
        { StartStopped },
        { inspectImage },
        { system, systemClock, systemLogger },
      ] = await Promise.all([
        import('../server/config.ts'),
        import('../server/run.ts'),
        import('../server/start/stoppable-start.ts'),
        import('../agent/images/unpack/inspect-image.ts'),
        import('../base/system.ts'),
      ]);
      const imageMap = await imageMapIn(system.workingDirectory());
      const configured = configPath(cli, given, prefix);
      const named = await whatConfigNames(configured, { imageMap: flags.imageMap });
      const environment = { ...cli.environment, [`${prefix}CONFIG`]: undefined }; // the file is known
      const config = await processConfig({ environment }, ServerConfig, {
        file: named.file,
        flags: {
          ...checkedIntakeFlags(flags),
          imageMap: named.imageMap,
          dataDirectory: dataDir,
          tlsNames: tlsName.length === 0 ? undefined : [...tlsName],
        },
        defaults: imageMap === undefined ? {} : { imageMap },
        prefix,
        variables: { ORCH_CONFIG: `${prefix}IMAGE_MAP`, ...intakeVariables(prefix) },
      });
      const stopped = cli.interruption();
      const log = systemLogger(config.logLevel, config.logFormat);
      if (imageMap !== undefined && named.imageMap === undefined && config.imageMap === imageMap)
        log.info('no image map was given; using the one in the working directory', { path: imageMap });
      if (configured !== undefined && named.file === undefined)
        log.info('the file of --config has the keys of an image map, and is taken as one', { path: configured });
      const server = await tellFailure(
        'start the server',
        () =>
          attempting(
            'start the server',
            () => startServer(config, { log, inspectImage, signal: stopped }),
            storeAdvice,
          ),
        { Locked: 'or use another file for this server: --store sqlite:PATH' },
      ).catch((error: unknown) => {
        if (error instanceof StartStopped) return undefined; // as requested
        throw error;
      });
      if (server === undefined) {
        cli.stderr.write('berth server was stopped before it was ready\n');
        return;
      }
      const pin = server.caFingerprint === undefined ? '' : ` --ca-fingerprint ${server.caFingerprint}`;
      cli.stderr.write(
        `berth server listens on ${server.url}\n` +
          (server.placementUrl === undefined ? '' : `the Placement API is at ${server.placementUrl}/ too\n`) +
          `operator token: ${config.dataDirectory}/operator.token; use it with: berth context set NAME --url ${server.url} --token-file FILE${pin}\n`,
      );
      await tellSupervisor(cli);
      systemClock.setTimer(releaseAfterMs, system.releaseUnused, { background: true });
      await untilAborted(stopped);
      await server.close();
    },
  );
}
