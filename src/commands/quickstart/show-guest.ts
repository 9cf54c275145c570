// Shows the guest that has booted: its console, address and phases, a login, and what to type next.

import { sleep } from '../../base/clock.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../../cli/cli.ts';
import { addressOf, stepsOf } from '../../cli/instances/instance-view.ts';
import { fieldLines, tableLines } from '../../cli/print/output.ts';
import type { Session } from '../../cli/session.ts';
import { seconds } from '../../cli/options/units.ts';
import type { BuildableImage } from '../image-build.ts';
import { quickstartImages } from './quickstart-images.ts';
import { type LoginKey, logIn } from './guest-login.ts';
import type { Stage } from './stage.ts';
import { removeGuest } from './remove-guest.ts';
import { tellConsole } from './console.ts';
import type { Teller } from './teller.ts';

export async function showGuest(cli: Cli, tell: Teller, session: Session, instance: Instance): Promise<void> {
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
export async function showLogin(
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

export function tellNext(
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
