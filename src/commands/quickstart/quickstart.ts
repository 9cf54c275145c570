// `berth quickstart`: from nothing to a running guest on this machine, step by step, each with its duration. It removes
// everything that it started; a failure ends with the console's last lines and advice.

import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Instance } from '../../api/resources/instance.ts';
import { Servers } from '../../api/client/servers.ts';
import { createUserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../../cli/cli.ts';
import { dashboardLink } from '../../cli/access/dashboard.ts';
import { contextFilePath, type LocalContext, useLocalContext } from '../../cli/context-file.ts';
import { attempting, CommandError, exitCodes, usageError } from '../../cli/exit-codes.ts';
import { acceleratorFrom, acceleratorHelp } from '../accelerator-option.ts';
import { storeAdvice, tellFailure } from '../store-of.ts';
import { listAll } from '../../cli/print/follow.ts';
import type { Session } from '../../cli/session.ts';
import { visible } from '../../cli/print/terminal.ts';
import { bytes, seconds } from '../../cli/options/units.ts';
import type { LocalFleet } from '../local-fleet.ts';
import type { BuiltFile } from '../image-build.ts';
import { untilAborted } from '../../base/concurrency/until-aborted.ts';
import { quickstartImages } from './quickstart-images.ts';
import { type LoginKey, loginKey } from './guest-login.ts';
import { type Plan, type Stage, drivers, images } from './stage.ts';
import { untilHostReady, hostText } from './host.ts';
import { bootGuest } from './boot-guest.ts';
import { removeGuest } from './remove-guest.ts';
import { showGuest, showLogin, tellNext } from './show-guest.ts';
import { type Teller, teller } from './teller.ts';

interface QuickstartFlags {
  readonly yes?: true;
  readonly once?: true;
  readonly driver: string;
  readonly image: string;
  readonly accelerator?: string;
  readonly reason?: string;
  readonly dataDir?: string;
  readonly imageDir?: string;
  readonly listen?: string;
}

export function quickstartCommand(cli: Cli): Command {
  return new Command('quickstart')
    .description('Start a control plane, an agent and a first guest, step by step')
    .option('-y, --yes', 'ask no questions')
    .option('--once', 'remove the guest at the end and exit')
    .option('--driver <driver>', drivers.join(', '), 'qemu')
    .option('--image <image>', images.join(' or '), 'tiny')
    .option('--accelerator <accelerator>', acceleratorHelp)
    .option('--reason <text>', 'text that explains why the driver is not the default')
    .option(
      '--data-dir <directory>',
      `directory for all data; default: ${folders.own.data}, or ${folders.shared.data} with libvirt`,
    )
    .option(
      '--image-dir <directory>',
      `directory for built images; default: ${folders.own.images}, or ${folders.shared.images} with libvirt`,
    )
    .option('--listen <address:port>', 'default: 127.0.0.1:7070, or any free port when that is taken')
    .action(async (flags: QuickstartFlags) => {
      const driver = drivers.find((known) => known === flags.driver);
      if (!driver) throw usageError(`--driver cannot be "${flags.driver}"`, `choose one of: ${drivers.join(', ')}`);
      const image = images.find((known) => known === flags.image);
      if (!image) throw usageError(`--image cannot be "${flags.image}"`, `choose one of: ${images.join(', ')}`);
      const usual = driver === 'libvirt' ? folders.shared : folders.own;
      await quickstart(cli, {
        ...flags,
        driver,
        image,
        accelerator: acceleratorFrom(cli, flags.accelerator),
        dataDirectory: resolve(flags.dataDir ?? usual.data),
        imageDirectory: resolve(flags.imageDir ?? usual.images),
      });
    });
}

/** libvirt runs guests as a separate user without access to home directories. */
const folders = {
  own: { data: '.berth/quickstart', images: '.berth/images' },
  shared: { data: '/var/lib/berth/quickstart', images: '/var/lib/berth/images' },
} as const;

async function quickstart(cli: Cli, plan: Plan): Promise<void> {
  const tell = teller(cli);
  const stopped = cli.interruption();
  const startedMs = cli.clock.monotonicMs();
  if (plan.driver === 'fake') {
    tell.line(
      `Guests are simulated (driver "fake")${plan.reason === undefined ? '' : `: ${visible(plan.reason)}`}. Everything else is real.`,
    );
  }
  // Before the agent, which tests KVM with the kernel of this image.
  const built = plan.driver === 'fake' ? undefined : await buildGuestImage(tell, plan, stopped);
  const fleet = await tell.step(
    'starting control plane and agent',
    () => startFleet(cli, plan),
    ({ url }) => `control plane on ${url}, with an agent`,
  );
  let context: LocalContext | undefined;
  const makeCurrent = async (): Promise<boolean> => {
    const path = contextFilePath(cli);
    context = await useLocalContext(path, 'quickstart', { url: fleet.url, token: fleet.operatorToken });
    return context.current;
  };
  try {
    const session = sessionOf(cli, fleet);
    await Promise.race([
      steps(cli, tell, { plan, built, fleet, session, startedMs, stopped, makeCurrent }),
      failure(fleet),
    ]);
  } finally {
    try {
      const again = await context?.leave();
      if (again !== undefined) tell.line(`context ${again} is current again`);
    } finally {
      await fleet.close();
    }
  }
}

async function startFleet(
  { environment }: Cli,
  { dataDirectory, imageDirectory, listen, driver, accelerator }: Plan,
): Promise<LocalFleet> {
  const [{ startLocalFleet }, { systemLogger }] = await Promise.all([
    import('../local-fleet.ts'),
    import('../../base/system.ts'),
  ]);
  const start = (): Promise<LocalFleet> =>
    startLocalFleet(
      {
        dataDirectory,
        imageDirectory,
        listen,
        drivers: [driver],
        accelerator,
        libvirtUri: environment['LIBVIRT_URI'] || undefined,
        libvirtNetwork: environment['LIBVIRT_NETWORK'] || undefined,
      },
      { log: systemLogger('error') },
    );
  return tellFailure('start the fleet', () => attempting('start the fleet', start, storeAdvice), {
    Locked: 'or use another directory: --data-dir DIRECTORY',
  });
}

function sessionOf(cli: Cli, { url, operatorToken: token }: LocalFleet): Session {
  return {
    client: createUserClient({ fetch: cli.fetch, url, token, userAgent: `berth/${cli.version}` }),
    servers: new Servers({ urls: [url] }),
    project: 'default',
  };
}

async function failure(fleet: LocalFleet): Promise<never> {
  const error = await fleet.failed;
  throw new CommandError(exitCodes.internal, `the agent cannot continue: ${error.message}`, { cause: error });
}

async function steps(cli: Cli, tell: Teller, stage: Stage): Promise<void> {
  const { plan, fleet, session, startedMs } = stage;
  await tell.step(
    `waiting for host ${fleet.hostName}`,
    () => untilHostReady(cli, session, stage),
    (host) => `host ${host.metadata.name}: ${hostText(host)}`,
  );
  await addImage(stage);
  const key = await keyFor(cli, plan);
  const instance = await bootGuest(cli, tell, { ...stage, key });
  await showGuest(cli, tell, session, instance);
  if (key !== undefined) await showLogin(cli, tell, { ...stage, key }, instance);
  const { url: dashboard } = await dashboardLink(session);
  tell.line('');
  tell.line(`All of it took ${seconds(cli.clock.monotonicMs() - startedMs)}.`);
  tell.line(`Dashboard, by a link that works once: ${dashboard}`);
  if (plan.once) {
    await tell.step(
      `removing ${instance.metadata.name}`,
      () => removeGuest(cli, stage, instance),
      () => `${instance.metadata.name} is removed completely`,
    );
    return tellOthers(tell, session, instance);
  }
  const current = await stage.makeCurrent();
  tellNext(tell, instance.metadata.name, { current, image: plan.image, key });
  await untilAborted(stage.stopped);
  await farewell(cli, tell, stage, instance);
}

/** Undefined: guests of this image have no login, or are simulated. */
async function keyFor(cli: Cli, { image, driver, dataDirectory }: Plan): Promise<LoginKey | undefined> {
  if (quickstartImages[image].user === undefined || driver === 'fake') return undefined;
  return loginKey(cli, dataDirectory);
}

async function buildGuestImage(tell: Teller, { image, imageDirectory }: Plan, signal: AbortSignal): Promise<BuiltFile> {
  const { imageFile } = await import('../image-build.ts');
  return tell.step(
    `building the image ${image}`,
    (progress) => imageFile(image, { directory: imageDirectory, signal, onProgress: progress }),
    ({ fresh, sizeBytes }) => `image ${image}: ${fresh ? 'built' : 'found'}, ${bytes(sizeBytes)}`,
  );
}

async function addImage({ plan, built, session }: Stage): Promise<void> {
  const { registerImage } = await import('../image-build.ts');
  const pretended: BuiltFile['spec'] = {
    source: 'file:///dev/null',
    format: 'raw',
    decompress: 'none',
    aliases: [],
    defaults: { cpus: 1, memoryMiB: 128 },
  };
  await registerImage(session.client, plan.image, built?.spec ?? pretended);
}

async function farewell(cli: Cli, tell: Teller, stage: Stage, { metadata }: Instance): Promise<void> {
  const { client } = stage.session;
  const { items } = await listAll(client, 'instance');
  const own = items.find((instance) => instance.metadata.id === metadata.id);
  tell.line('');
  if (own)
    await tell.step(
      `removing ${metadata.name}`,
      () => removeGuest(cli, stage, own),
      () => `${metadata.name} is removed`,
    );
  await tellOthers(tell, stage.session, { metadata });
}

/** Guests outlive the programs that started them, so the output lists those that remain. */
async function tellOthers(tell: Teller, { client }: Session, own: Pick<Instance, 'metadata'>): Promise<void> {
  const { items } = await listAll(client, 'instance');
  const others = items.map(({ metadata }) => metadata).filter(({ id }) => id !== own.metadata.id);
  if (others.length === 0) return;
  const names = others.map(({ name }) => name);
  tell.line(
    `${names.join(', ')} ${names.length === 1 ? 'keeps' : 'keep'} running. To end ${names.length === 1 ? 'it' : 'them'}: npm run quickstart, and beside it: npx berth rm ${names.join(' ')}`,
  );
}
