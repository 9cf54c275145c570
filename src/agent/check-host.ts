// Whether this machine can be a host with a configuration: what the agent would find, before it runs. Joins nothing, runs no guest but the
// probe of KVM, and leaves nothing behind. An agent may run meanwhile: its data directory is not opened.

import { mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { serverUrls } from '../api/client/servers.ts';
import { awaitWithin } from './host/await-within.ts';
import { describeError, type Logger } from '../base/log.ts';
import { system, systemClock, systemFetch, systemPrng } from '../base/system.ts';
import { version } from '../base/version.ts';
import { guestUsersOf, makeFolder, needsPassage } from './agent-folders.ts';
import { hostNetwork, measured } from './agent-parts.ts';
import { checkedConfig } from './checked-config.ts';
import type { AgentConfig } from './config.ts';
import { drivers as driverRegistry } from './drivers/registry.ts';
import { isJoined, readIdentity } from './enrolment/identity-file.ts';
import { openServerAccess } from './enrolment/server-access.ts';
import { hostCredentials } from './images/credentials/image-credentials.ts';
import { pretendedImages } from './images/pretended-images.ts';
import { guestGuards } from './network/guest-guards.ts';
import { openDrivers } from './open-drivers.ts';

export interface HostFinding {
  readonly check: string;
  /** warning: the host works, with less. */
  readonly result: 'ok' | 'warning' | 'failed';
  readonly message: string;
}

interface Parts {
  readonly log: Logger;
  readonly drivers?: typeof driverRegistry;
}

/** Below this, a host has no room for images and disks. */
const freeGiBMin = 10;
/** Certificates and times of events are wrong by as much. */
const clockMsMax = 5_000;
const answerMsMax = 8_000;

/** Throws `InvalidRequest` for a configuration that no agent would start with. */
export async function checkHost(
  config: AgentConfig,
  { log, drivers: registry = driverRegistry }: Parts,
): Promise<HostFinding[]> {
  const { token, vendorData } = await checkedConfig(config, { registry, log });
  const place = await existingFolder(config.dataDirectory);
  const server = serverFindings(config, token, log);
  let directory: string;
  try {
    directory = await mkdtemp(join(place, '.berth-check-'));
  } catch (error) {
    const fault = `${config.dataDirectory} cannot be written: ${describeError(error)}`;
    return [failed('data directory', fault), ...(await server)];
  }
  try {
    const users = guestUsersOf(config.guestUsers, system.userId());
    await makeFolder(directory, { passable: needsPassage(config.drivers, { ownUsers: users !== undefined }) });
    const trial = { ...config, dataDirectory: directory };
    return [
      ...(await machineFindings(trial, config.dataDirectory)),
      ...(await networkFindings(trial, log)),
      ...(await driverFindings(trial, { registry, vendorData, log })),
      ...(await server),
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const ok = (check: string, message: string): HostFinding => ({ check, result: 'ok', message });
const warning = (check: string, message: string): HostFinding => ({ check, result: 'warning', message });
const failed = (check: string, message: string): HostFinding => ({ check, result: 'failed', message });

/** The data directory, or the folder in which it would be made. */
async function existingFolder(path: string): Promise<string> {
  const found = await stat(path).then(
    (entry) => entry.isDirectory(),
    () => false, // it is not there, or cannot be looked at: then neither can what is in it be written
  );
  return found || path === dirname(path) ? path : existingFolder(dirname(path));
}

async function machineFindings(trial: AgentConfig, dataDirectory: string): Promise<HostFinding[]> {
  const { capacity, architecture, address } = await measured(trial);
  const { bavail, bsize } = await statfs(trial.dataDirectory);
  const freeGiB = Math.floor((bavail * bsize) / 1024 ** 3);
  const { VCPU = 0, MEMORY_MB = 0 } = capacity;
  return [
    ok('machine', `${architecture}, ${VCPU} CPUs, ${MEMORY_MB} MiB memory, address ${address ?? 'none'}`),
    (freeGiB < freeGiBMin ? warning : ok)('data directory', `${dataDirectory}: ${freeGiB} GiB free`),
    system.userId() === 0
      ? ok('user', 'root')
      : warning(
          'user',
          'not root: guests run as this user; the networks nat and bridge, and volumes for containers, need root',
        ),
  ];
}

async function networkFindings(trial: AgentConfig, log: Logger): Promise<HostFinding[]> {
  const network = hostNetwork(trial, log);
  if (network === undefined) return [ok('network', 'user')];
  try {
    const fault = await network.fault();
    return [fault === undefined ? ok('network', trial.network) : failed('network', `${trial.network}: ${fault}`)];
  } finally {
    await network.close();
  }
}

async function driverFindings(
  trial: AgentConfig,
  {
    registry,
    vendorData,
    log,
  }: {
    readonly registry: typeof driverRegistry;
    readonly vendorData: (() => Promise<string>) | undefined;
    readonly log: Logger;
  },
): Promise<HostFinding[]> {
  const userId = system.userId();
  const users = guestUsersOf(trial.guestUsers, userId);
  const opened = await openDrivers(trial, {
    ...{ registry, log, vendorData, users },
    images: pretendedImages(),
    imageCredentials: hostCredentials([], systemClock),
    network: undefined,
    pretended: undefined,
    guards: guestGuards(trial, { agentId: 'agent_check', userId, users, clock: systemClock, log }),
    passable: needsPassage(trial.drivers, { ownUsers: users !== undefined }),
  });
  const findings: HostFinding[] = [];
  for (const driver of opened) {
    const { available, reason, accelerator, version: its } = await driver.fingerprint();
    const what = [its, accelerator === undefined || accelerator === 'none' ? undefined : `under ${accelerator}`, reason]
      .filter((part) => part !== undefined)
      .join(', ');
    const judge = !available ? failed : reason === undefined ? ok : warning;
    findings.push(judge(`driver ${driver.name}`, what === '' ? 'it works' : what));
    await driver.close();
  }
  return findings;
}

async function serverFindings(config: AgentConfig, token: string | undefined, log: Logger): Promise<HostFinding[]> {
  const access = await openServerAccess(config, {
    ...{ fetch: (url, init) => systemFetch(url, init), token, clock: systemClock, prng: systemPrng(), log },
  });
  const trusted = config.ca !== undefined || isJoined(await readIdentity(config.dataDirectory));
  const forever = new AbortController();
  const each = async (url: string): Promise<HostFinding[]> => {
    const limits = { clock: systemClock, timeoutMs: answerMsMax, signal: forever.signal, what: `server ${url}` };
    try {
      const answer = await awaitWithin(limits, (signal) =>
        access.fetch(`${url}/v1/version`, { method: 'GET', headers: {}, signal }),
      );
      return judgeAnswer(url, answer.headers.get('date'), parsed(await answer.text()));
    } catch (error) {
      // A server with a certificate of its fleet is trusted by the join token, not before.
      const reached = !trusted && url.startsWith('https:') && (await awaitWithin(limits, () => accepts(url)));
      const advice = 'answers; its certificate is not verified before "berth agent join", or give --ca';
      return [reached ? warning(`server ${url}`, advice) : failed(`server ${url}`, causeOf(error))];
    }
  };
  try {
    return (await Promise.all(serverUrls(config.serverUrl).map(each))).flat();
  } finally {
    access.close();
  }
}

function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443) });
    const end = (accepted: boolean) => (): void => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}

/** What another server says is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // its version is unknown then
  }
}

/** Node says why a fetch failed in the cause of its error. */
function causeOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? describeError(error.cause) : describeError(error);
}

function judgeAnswer(url: string, date: string | null, body: unknown): HostFinding[] {
  const its = typeof body === 'object' && body !== null && 'version' in body ? String(body.version) : 'unknown';
  const offMs = date === null ? 0 : Math.abs(Date.parse(date) - systemClock.nowMs());
  return [
    ok(`server ${url}`, `answers, version ${its}${its === version ? '' : ` (this program: ${version})`}`),
    offMs > clockMsMax
      ? warning('clock', `differs by ${Math.round(offMs / 1_000)} s from that of ${url}; run a time service on both`)
      : ok('clock', `as that of ${url}`),
  ];
}
