// `berth quickstart`: from nothing to a running guest on this machine, step by step, each with its duration. It removes
// everything that it started; a failure ends with the console's last lines and advice.

import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { sleep } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import type { Host } from '../api/resources/host.ts';
import type { Instance } from '../api/resources/instance.ts';
import { Servers } from '../api/client/servers.ts';
import { createUserClient } from '../api/client/user-client.ts';
import type { Cli } from '../cli/cli.ts';
import { dashboardLink } from '../cli/access/dashboard.ts';
import { contextFilePath, type LocalContext, useLocalContext } from '../cli/context-file.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from '../cli/exit-codes.ts';
import type { AcceleratorSetting } from '../agent/drivers/accelerator-setting.ts';
import { acceleratorFrom, acceleratorHelp } from './accelerator-option.ts';
import { storeAdvice } from './store-of.ts';
import { follow, listAll } from '../cli/print/follow.ts';
import { addressOf, stepsOf } from '../cli/instances/instance-view.ts';
import { driversOf, hostReady } from '../cli/kinds.ts';
import { coloursFor, fieldLines, tableLines } from '../cli/print/output.ts';
import { startProgress } from '../cli/print/progress.ts';
import type { Session } from '../cli/session.ts';
import { visible } from '../cli/print/terminal.ts';
import { bytes, memory, seconds } from '../cli/options/units.ts';
import { untilGone, untilReady, waitForInstance } from '../cli/instances/wait.ts';
import type { LocalFleet } from './local-fleet.ts';
import type { BuildableImage, BuiltFile } from './image-build.ts';
import { quickstartImages } from './quickstart-images.ts';
import { keepLogs } from './quickstart-logs.ts';
import { SilenceWatch } from './quickstart-silence.ts';
import { type LoginKey, logIn, loginKey } from './quickstart-login.ts';
import { untilAborted } from '../base/concurrency/until-aborted.ts';

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

const drivers = ['qemu', 'libvirt', 'fake'] as const;
const images = ['tiny', 'debian-12'] as const;
const hostReadyWithinMs = 60_000;
const removedWithinMs = 60_000;

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

interface Plan {
  readonly driver: (typeof drivers)[number];
  readonly image: BuildableImage;
  readonly accelerator: AcceleratorSetting;
  readonly dataDirectory: string;
  readonly imageDirectory: string;
  readonly listen?: string | undefined;
  readonly once?: boolean | undefined;
  readonly reason?: string | undefined;
}

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
    import('./local-fleet.ts'),
    import('../base/system.ts'),
  ]);
  return attempting(
    'start control plane and agent',
    () =>
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
      ),
    storeAdvice,
  );
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

interface Stage {
  readonly plan: Plan;
  /** Absent: guests are simulated. */
  readonly built: BuiltFile | undefined;
  readonly fleet: LocalFleet;
  readonly session: Session;
  readonly startedMs: number;
  readonly stopped: AbortSignal;
  /**
   * Makes this fleet the current context until it ends. False: the user chose another server, which the output must
   * mention.
   */
  readonly makeCurrent: () => Promise<boolean>;
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

async function untilHostReady(cli: Cli, { client }: Session, { plan, fleet, stopped }: Stage): Promise<Host> {
  const overdue = new AbortController();
  const timer = cli.clock.setTimer(hostReadyWithinMs, () => overdue.abort());
  try {
    for await (const change of follow(cli, client, 'host', {}, AbortSignal.any([stopped, overdue.signal]))) {
      const hosts = change.type === 'sync' ? change.items : change.type === 'put' ? [change.resource] : [];
      const host = hosts.find(({ metadata }) => metadata.name === fleet.hostName);
      const found = host?.status.drivers.find(({ name }) => name === plan.driver);
      if (!host || !hostReady(host) || !found) continue;
      if (found.available) return host;
      throw new CommandError(
        exitCodes.badOutcome,
        `the driver "${plan.driver}" does not work here: ${found.reason ?? 'it does not say why'}`,
        {
          advice:
            plan.driver === 'qemu' && plan.accelerator !== 'kvm'
              ? 'apt-get install qemu-system-x86 qemu-utils; or try Berth without real guests: --driver fake'
              : undefined,
        },
      );
    }
    throw new Interrupted();
  } catch (error) {
    if (!(error instanceof Interrupted) || stopped.aborted) throw error;
    throw new CommandError(
      exitCodes.timedOut,
      `host "${fleet.hostName}" was not ready after ${seconds(hostReadyWithinMs)}`,
    );
  } finally {
    timer.cancel();
  }
}

function hostText({ status }: Host): string {
  const { VCPU: cpus, MEMORY_MB: mebi } = status.capacity ?? {};
  const reason = status.drivers.find(({ available }) => available)?.reason;
  return `${cpus ?? '?'} CPUs, ${mebi === undefined ? '?' : memory(mebi)}, ${driversOf(status.drivers)}${reason ? ` (${shortened(reason)})` : ''}`;
}

/** The beginning of a long reason; `berth host show` shows all of it. */
function shortened(reason: string): string {
  const [first = ''] = /^(?:KVM is not usable: )?.*?(?=: |; |\n|$)/.exec(reason) ?? [];
  return visible(first.length > 90 ? `${first.slice(0, 89)}…` : first);
}

/** Undefined: guests of this image have no login, or are simulated. */
async function keyFor(cli: Cli, { image, driver, dataDirectory }: Plan): Promise<LoginKey | undefined> {
  if (quickstartImages[image].user === undefined || driver === 'fake') return undefined;
  return loginKey(cli, dataDirectory);
}

async function buildGuestImage(tell: Teller, { image, imageDirectory }: Plan, signal: AbortSignal): Promise<BuiltFile> {
  const { imageFile } = await import('./image-build.ts');
  return tell.step(
    `building the image ${image}`,
    (progress) => imageFile(image, { directory: imageDirectory, signal, onProgress: progress }),
    ({ fresh, sizeBytes }) => `image ${image}: ${fresh ? 'built' : 'found'}, ${bytes(sizeBytes)}`,
  );
}

async function addImage({ plan, built, session }: Stage): Promise<void> {
  const { registerImage } = await import('./image-build.ts');
  const pretended: BuiltFile['spec'] = {
    source: 'file:///dev/null',
    format: 'raw',
    decompress: 'none',
    aliases: [],
    defaults: { cpus: 1, memoryMiB: 128 },
  };
  await registerImage(session.client, plan.image, built?.spec ?? pretended);
}

async function bootGuest(
  cli: Cli,
  tell: Teller,
  stage: Stage & { readonly key: LoginKey | undefined },
): Promise<Instance> {
  const { session, key } = stage;
  const { image } = stage.plan;
  const { ports, userData } = quickstartImages[image];
  const { items } = await listAll(session.client, 'instance', { project: session.project });
  const taken = new Set(items.map(({ metadata }) => metadata.name));
  let name = 'hello';
  for (let number = 2; taken.has(name); number++) name = `hello-${number}`;
  const made = await attempting(`run "${image}"`, () =>
    session.client.create('instance', {
      metadata: { name, project: session.project },
      spec: { image, ports: [...ports], userData, ...(key === undefined ? {} : { sshKeys: [key.publicKey] }) },
    }),
  );
  try {
    tell.line(`• asked for instance ${name}`);
    const ready = await untilBooted(cli, tell, stage, made);
    const { totalMs } = stepsOf(ready);
    tell.done(`${name} has booted on ${ready.status.host ?? '?'}`, totalMs);
    return ready;
  } catch (error) {
    if (!(error instanceof Interrupted)) await tellConsole(tell, session, name, 'The last lines of its console');
    const failure = error instanceof Interrupted ? error : await withLogs(stage, made, error);
    await removeGuest(cli, stage, made).catch(() => {}); // the original failure is what matters
    throw failure;
  }
}

/** Reports the guest's state while the guest is silent, and gives up after a while. */
async function untilBooted(
  cli: Cli,
  tell: Teller,
  { plan, fleet, session, stopped }: Stage,
  made: Instance,
): Promise<Instance> {
  const { id, name } = made.metadata;
  const { bootWithinMs, silenceMsMax } = quickstartImages[plan.image];
  const over = new AbortController();
  const ends = AbortSignal.any([stopped, over.signal]);
  const silence = new SilenceWatch({
    name,
    consolePath: join(guestFolder(plan, fleet, id), 'console.log'),
    silenceMsMax,
    look: () => fleet.describeGuest(id),
    tell: (text) => tell.line(`• ${text}`),
    clock: cli.clock,
  });
  const judge = untilReady(name);
  const booted = waitForInstance({ ...cli, interruption: () => ends }, session, {
    id,
    name,
    timeoutMs: bootWithinMs,
    judge(instance) {
      if (instance) silence.heardStatus(statusText(instance));
      return judge(instance);
    },
  });
  const silent = silence.run(over.signal).then(() => booted);
  try {
    return await Promise.race([booted, silent]);
  } finally {
    over.abort();
    // The loser of the race must not report anything.
    booted.catch(() => {});
    silent.catch(() => {});
  }
}

function statusText({ status: { phase, guest } }: Instance): string {
  const more = [guest?.progress, guest?.reason, guest?.accelerator && `under ${guest.accelerator}`];
  return [phase, ...more.filter((text) => text !== undefined && text !== 'under none')].join(', ');
}

const guestFolder = ({ driver }: Plan, { agentDirectory }: LocalFleet, id: string): string =>
  join(agentDirectory, driver, id);

/** The guest is deleted with its logs, so these are saved first. */
async function withLogs({ plan, fleet }: Stage, { metadata }: Instance, error: unknown): Promise<unknown> {
  if (!(error instanceof CommandError)) return error;
  const path = join(plan.dataDirectory, `${metadata.name}.log`);
  const state = (await fleet.describeGuest(metadata.id)) ?? 'nothing runs any more';
  const kept = await keepLogs(guestFolder(plan, fleet, metadata.id), { path, heading: `${error.message}\n${state}` });
  if (!kept) return error;
  const advice = `its console and what QEMU said are in ${path}`;
  return new CommandError(error.exitCode, error.message, { advice, cause: error });
}

const consoleBytesMax = 64 * 1024;

/** The end of the console, if available: an error here must not hide the failure that it explains. */
async function tellConsole(tell: Teller, { client, project }: Session, name: string, title: string): Promise<void> {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const bytes of client.log(name, { project })) {
      text = (text + decoder.decode(bytes, { stream: true })).slice(-consoleBytesMax);
    }
  } catch (error) {
    tell.line(`  (no console: ${describeError(error)})`);
    return;
  }
  const lines = text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are of no use here
    .replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '')
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
  tell.line('');
  tell.line(`${title}:`);
  for (const line of lines.slice(-12)) tell.line(`  | ${visible(line)}`);
}

async function showGuest(cli: Cli, tell: Teller, session: Session, instance: Instance): Promise<void> {
  const { metadata, status } = instance;
  await tellConsole(tell, session, metadata.name, `The console of ${metadata.name}`);
  const published = status.guest?.ports.find(({ guestPort }) => guestPort === 80);
  const real = status.guest?.accelerator === 'kvm' || status.guest?.accelerator === 'tcg';
  const url = published && published.hostPort > 0 && real ? `http://127.0.0.1:${published.hostPort}/` : undefined;
  const page = url === undefined ? undefined : await fetchPage(cli, url);
  tell.line('');
  for (const line of fieldLines([
    ['address', addressOf(instance)],
    [
      'port 80',
      url === undefined ? undefined : `${url}${page === undefined ? '' : `  answers: ${page.slice(0, 100)}`}`,
    ],
  ])) {
    tell.line(line);
  }
  const { steps: all, totalMs } = stepsOf(instance);
  const rows = [...all, ...(totalMs === undefined ? [] : [{ name: 'in all', durationMs: totalMs }])];
  tell.line('');
  const columns = [
    { header: 'PHASE', value: ({ name }: { name: string }) => name },
    { header: 'TOOK', value: ({ durationMs }: { durationMs: number }) => seconds(durationMs), right: true },
  ];
  for (const line of tableLines(columns, rows)) tell.line(line);
}

const pageTries = 20;

/** The guest's web server may start a moment after the boot has ended. */
async function fetchPage(cli: Cli, url: string): Promise<string | undefined> {
  for (let tries = 0; tries < pageTries; tries++) {
    const patience = new AbortController();
    const timer = cli.clock.setTimer(1_000, () => patience.abort());
    try {
      const response = await cli.fetch(url, { method: 'GET', headers: {}, signal: patience.signal });
      if (response.status === 200) return (await response.text()).trim();
    } catch {
      // not yet
    } finally {
      timer.cancel();
    }
    await sleep(cli.clock, 250);
  }
  return undefined;
}

/** With the command that the output tells the user to run. */
async function showLogin(
  cli: Cli,
  tell: Teller,
  stage: Stage & { readonly key: LoginKey },
  instance: Instance,
): Promise<void> {
  const { plan, fleet, key } = stage;
  const target = `${quickstartImages[plan.image].user ?? ''}@${instance.metadata.name}`;
  tell.line('');
  tell.line(`berth ssh ${target} -- uname -a`);
  try {
    await logIn(cli, {
      dataDirectory: plan.dataDirectory,
      context: { url: fleet.url, token: fleet.operatorToken },
      words: ['-i', key.path, target, '--', 'uname', '-a'],
    });
  } catch (error) {
    await removeGuest(cli, stage, instance).catch(() => {}); // the original failure is what matters
    throw error;
  }
}

function tellNext(
  tell: Teller,
  name: string,
  {
    current,
    image,
    key,
  }: { readonly current: boolean; readonly image: BuildableImage; readonly key: LoginKey | undefined },
): void {
  const berth = current ? 'npx berth' : 'npx berth --context quickstart';
  tell.line('');
  tell.line('In another terminal, type:');
  for (const line of fieldLines(
    [
      [`${berth} ps`, 'what runs'],
      ...(key === undefined
        ? []
        : [[`${berth} ssh -i ${key.path} ${quickstartImages[image].user ?? ''}@${name}`, 'a shell in it'] as const]),
      [`${berth} logs -f ${name}`, 'its console'],
      [`${berth} explain ${name}`, 'why it is where it is'],
      [`${berth} run ${image} --wait`, 'another one'],
      [`${berth} rm ${name}`, 'remove it'],
      [`${berth} dashboard`, 'another link to the dashboard'],
    ],
    '  ',
  )) {
    tell.line(line);
  }
  tell.line('');
  tell.line('It stays up until Ctrl-C.');
}

/** Deletes the guest and waits until the API, and the files and processes of this machine, no longer contain its id. */
async function removeGuest(cli: Cli, { session, fleet }: Stage, { metadata }: Instance): Promise<void> {
  const calm: Cli = { ...cli, interruption: () => new AbortController().signal }; // even after Ctrl-C
  await attempting(`remove instance "${metadata.name}"`, () => session.client.delete('instance', metadata.id));
  await waitForInstance(calm, session, {
    id: metadata.id,
    name: metadata.name,
    judge: untilGone,
    timeoutMs: removedWithinMs,
  });
  const traces = [...(await filesOf(fleet.agentDirectory, metadata.id)), ...(await processesOf(metadata.id))];
  if (traces.length > 0) {
    throw new CommandError(
      exitCodes.badOutcome,
      `instance "${metadata.name}" is removed, but these remain: ${traces.join(', ')}`,
    );
  }
}

async function filesOf(directory: string, id: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter(({ name }) => name.includes(id)).map(({ parentPath, name }) => join(parentPath, name));
}

async function processesOf(id: string): Promise<string[]> {
  const numbers = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    numbers.map(async (pid) => {
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''); // it has ended in the meantime
      return commandLine.includes(id) ? [`process ${pid}`] : [];
    }),
  );
  return found.flat();
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

interface Teller {
  line(text: string): void;
  done(text: string, tookMs?: number): void;
  step<T>(
    doing: string,
    work: (progress: (text: string) => void) => Promise<T>,
    done: (result: T) => string,
  ): Promise<T>;
}

function teller(cli: Cli): Teller {
  const colours = coloursFor(cli.stdout, cli.environment);
  const line = (text: string): void => void cli.stdout.write(`${text}\n`);
  const done = (text: string, tookMs?: number): void =>
    line(`${colours.green('✔')} ${text}${tookMs === undefined ? '' : colours.dim(`  ${seconds(tookMs)}`)}`);
  return {
    line,
    done,
    async step(doing, work, doneText) {
      const progress = startProgress(cli);
      const startedMs = cli.clock.monotonicMs();
      progress.update(doing);
      try {
        const result = await work((text) => progress.update(`${doing}: ${text}`));
        progress.end();
        done(doneText(result), cli.clock.monotonicMs() - startedMs);
        return result;
      } finally {
        progress.end();
      }
    },
  };
}
