// Creates the quickstart's guest and waits until it has booted. A guest that does not boot is removed, and its logs are kept.

import { join } from 'node:path';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../../cli/cli.ts';
import { attempting, CommandError, Interrupted } from '../../cli/exit-codes.ts';
import { listAll } from '../../cli/print/follow.ts';
import { stepsOf } from '../../cli/instances/instance-view.ts';
import { untilReady, waitForInstance } from '../../cli/instances/wait.ts';
import type { LocalFleet } from '../local-fleet.ts';
import { quickstartImages } from './quickstart-images.ts';
import { keepLogs } from './keep-logs.ts';
import { SilenceWatch } from './silence-watch.ts';
import type { LoginKey } from './guest-login.ts';
import type { Plan, Stage } from './stage.ts';
import { removeGuest } from './remove-guest.ts';
import { tellConsole } from './console.ts';
import type { Teller } from './teller.ts';

export async function bootGuest(
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
