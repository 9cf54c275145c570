// One attempt of a check on one guest, through the ways into it that its driver has. It decides nothing and never throws: an attempt that
// cannot be made has failed, with its reason.

import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Check } from '../../../api/resources/check.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { GuestAccess, GuestCommand } from '../../drivers/access.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Attempt } from './tally.ts';

export interface ProbeCall {
  readonly driver: Driver;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Aborts when the attempt is no longer of interest. */
  readonly signal: AbortSignal;
  /** The command of a check that goes on after its time; it ends with `exit`. */
  readonly onLeft: (command: GuestCommand) => void;
}

/** Resolves within `timeoutMs`, whatever the guest does. */
export async function probe(check: Check, call: ProbeCall): Promise<Attempt> {
  const { clock, timeoutMs, signal } = call;
  const over = new AbortController();
  const end = (): void => over.abort();
  signal.addEventListener('abort', end, { once: true });
  const late = Promise.withResolvers<Attempt>();
  const timer = clock.setTimer(timeoutMs, () => {
    late.resolve(bad(`no answer within ${timeoutMs} ms`));
    end();
  });
  try {
    const attempt = attemptOf(check, call, over.signal).catch((error: unknown) => bad(describeError(error)));
    return await Promise.race([attempt, late.promise]);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', end);
    over.abort();
  }
}

const bad = (message: string): Attempt => ({ ok: false, message });
const good: Attempt = { ok: true };

function attemptOf(check: Check, call: ProbeCall, over: AbortSignal): Promise<Attempt> {
  const { access } = call.driver;
  if (check.tcp !== undefined) return tcp(access, check.tcp.port, call, over);
  if (check.http !== undefined) return http(access, check.http, call, over);
  if (check.exec !== undefined) return exec(access, check.exec, call, over);
  if (check.image !== undefined) return image(access, check.image.container, call);
  return Promise.resolve(bad('the check names nothing to attempt'));
}

async function tcp(
  access: GuestAccess | undefined,
  port: number,
  { driver, instanceId }: ProbeCall,
  over: AbortSignal,
): Promise<Attempt> {
  if (access?.reach === undefined) return bad(`driver "${driver.name}" has no way to ports of its guests`);
  await access.reach(instanceId, port, over);
  return good;
}

async function http(
  access: GuestAccess | undefined,
  { port, path = '/', host = 'localhost' }: NonNullable<Check['http']>,
  { driver, instanceId }: ProbeCall,
  over: AbortSignal,
): Promise<Attempt> {
  if (access?.dial === undefined) return bad(`driver "${driver.name}" has no way to ports of its guests`);
  const stream = await access.dial(instanceId, port);
  if (over.aborted) {
    stream.destroy();
    return bad('given up');
  }
  try {
    const status = await statusAt(stream, { path, host }, over);
    return status >= 200 && status < 400 ? good : bad(`GET ${path} was answered with status ${status}`);
  } finally {
    stream.destroy();
  }
}

/** Only the head of the answer is read. */
function statusAt(
  stream: Duplex,
  { path, host }: { readonly path: string; readonly host: string },
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host, connection: 'close', 'user-agent': 'berth-check', accept: '*/*' };
    const asked = request({
      createConnection: () => stream,
      path,
      headers,
      signal,
      maxHeaderSize: 65_536,
    });
    asked.on('response', (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    asked.on('error', (error) => reject(new Error(`GET ${path} was not answered: ${error.message}`)));
    asked.end();
  });
}

/** Enough for one line that says why. */
const saidMax = 256;

async function exec(
  access: GuestAccess | undefined,
  { command: words, container }: NonNullable<Check['exec']>,
  call: ProbeCall,
  over: AbortSignal,
): Promise<Attempt> {
  const { driver, instanceId } = call;
  if (access?.exec === undefined) return bad(`driver "${driver.name}" runs no commands in its guests`);
  const command = await access.exec(instanceId, {
    command: [...words],
    stdin: false,
    ...(container === undefined ? {} : { container }),
  });
  command.exit.catch(() => {}); // awaited below, or of no interest any more
  const leave = (): void => call.onLeft(command);
  if (over.aborted) leave();
  else over.addEventListener('abort', leave, { once: true });
  let said = '';
  for await (const { data } of command.output())
    if (said.length < saidMax) said += new TextDecoder().decode(data.subarray(0, saidMax));
  const { code } = await command.exit;
  over.removeEventListener('abort', leave);
  if (code === 0) return good;
  const line = said.trim().split('\n').at(-1)?.slice(0, saidMax) ?? '';
  return bad(`the command ended with code ${code}${line === '' ? '' : `: ${line}`}`);
}

async function image(
  access: GuestAccess | undefined,
  container: string | undefined,
  { driver, instanceId }: ProbeCall,
): Promise<Attempt> {
  if (access?.imageHealth === undefined) return bad(`guests of driver "${driver.name}" have no HEALTHCHECK`);
  const health = await access.imageHealth(instanceId, container);
  if (health === 'healthy') return good;
  return bad(health === 'none' ? 'its image has no HEALTHCHECK' : `its HEALTHCHECK says ${health}`);
}
