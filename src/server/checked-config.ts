// What the process reads from its configuration, with the checks that need more than one field or the machine. Each throws
// `InvalidRequest` with the field.

import { constants } from 'node:fs';
import { access, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { ApiError } from '../api/errors.ts';
import { describeError } from '../base/log.ts';
import type { Policy } from '../core/state/context.ts';
import type { Store } from '../store/store.ts';
import type { ServerConfig } from './config.ts';
import type { TlsIdentity } from './http/serve.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

export function listenAddress({ listen }: Pick<ServerConfig, 'listen'>): Address {
  return addressIn('listen', listen);
}

/** Of the listener that serves the Placement API alone; undefined: there is none. */
export function placementAddress({
  listen,
  placementListen,
}: Pick<ServerConfig, 'listen' | 'placementListen'>): Address | undefined {
  if (placementListen === undefined) return undefined;
  if (placementListen === listen && addressIn('listen', listen).port !== 0)
    throw new ApiError('InvalidRequest', 'placementListen must differ from listen; choose another port', {
      field: 'placementListen',
    });
  return addressIn('placementListen', placementListen);
}

function addressIn(field: string, text: string): Address {
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon).replace(/^\[|\]$/g, '');
  const port = Number(text.slice(colon + 1));
  if (port > 65_535) throw new ApiError('InvalidRequest', `${field}: ${port} is not a port`, { field });
  return { host, port };
}

/** Whether this server speaks TLS: wherever other machines can connect, unless plain HTTP is asked for by name. */
export function speaksTls(config: ServerConfig): boolean {
  const { tls, tlsCertificate } = config;
  if (tlsCertificate !== undefined) {
    if (tls !== false) return true;
    throw new ApiError('InvalidRequest', 'tls: false and tlsCertificate cannot both be set', { field: 'tls' });
  }
  if (tls === true) return true;
  const local = isLocal(config);
  const plain = config.insecureHttp || config.insecure;
  if (local || plain) return false;
  if (tls === undefined) return true;
  throw new ApiError(
    'InvalidRequest',
    `tls: ${openAddress(config)} is open to other machines, and plain HTTP shows every token to the network; leave tls out, put TLS in front of 127.0.0.1, or set insecureHttp: true`,
    { field: 'tls' },
  );
}

/** One that other machines can connect to. */
function openAddress({ listen, placementListen = listen }: ServerConfig): string {
  return isLoopback(listenAddress({ listen })) ? placementListen : listen;
}

/** Whether only this machine can connect, to either listener. */
export function isLocal(config: Pick<ServerConfig, 'listen' | 'placementListen'>): boolean {
  const placement = placementAddress(config);
  return isLoopback(listenAddress(config)) && (placement === undefined || isLoopback(placement));
}

function isLoopback({ host }: Address): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/**
 * The URL under which agents and clients reach this server; undefined: it is not announced. A local address would reach another
 * server from another machine, and with a store that only one server can open there are no other servers.
 */
export function advertisedUrl(config: ServerConfig, store: Store): string | undefined {
  const { advertiseUrl, listen } = config;
  if (advertiseUrl !== undefined) return advertiseUrl;
  const here = /^(localhost|127\.|\[::1\]|0\.0\.0\.0|\[::\])/;
  if (store.exclusive || here.test(listen)) return undefined;
  return `${speaksTls(config) ? 'https' : 'http'}://${listen}`;
}

/** Throws `InvalidRequest` when only one of the two is configured, a file cannot be read, or certificate and key do not match. */
export async function readTls({ tlsCertificate, tlsKey }: ServerConfig): Promise<TlsIdentity | undefined> {
  if (tlsCertificate === undefined && tlsKey === undefined) return undefined;
  const read = (field: string, path: string | undefined): Promise<string> => {
    if (path === undefined)
      throw new ApiError('InvalidRequest', `${field}: tlsCertificate and tlsKey go together`, { field });
    return readFile(path, 'utf8').catch((cause: unknown) => {
      throw new ApiError('InvalidRequest', `${field}: cannot read ${path}: ${describeError(cause)}`, { field, cause });
    });
  };
  const identity = { cert: await read('tlsCertificate', tlsCertificate), key: await read('tlsKey', tlsKey) };
  try {
    createSecureContext(identity);
  } catch (cause) {
    const why = describeError(cause);
    throw new ApiError('InvalidRequest', `tlsKey: ${tlsKey} is not a private key for ${tlsCertificate}: ${why}`, {
      field: 'tlsKey',
      cause,
    });
  }
  return identity;
}

/** Other systems may ask for any number of jobs: they must not fill the fleet because a limit was forgotten. */
const maxConcurrencyOfIntake = 2;

function maxConcurrencyOf({ maxConcurrency, amqpUrl, forges }: ServerConfig): number | undefined {
  const intake = amqpUrl !== undefined || forges.length > 0;
  return maxConcurrency ?? (intake ? maxConcurrencyOfIntake : undefined);
}

/** The folder of logs and artifacts; it is made, and can be written to. Throws `InvalidRequest`. */
export async function runDirectory({ blobDir, dataDirectory }: ServerConfig): Promise<string> {
  const directory = join(blobDir ?? join(dataDirectory, 'blobs'), 'runs');
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await access(directory, constants.W_OK | constants.X_OK);
    return directory;
  } catch (cause) {
    const field = 'blobDir';
    throw new ApiError('InvalidRequest', `${field}: cannot write to ${directory}: ${describeError(cause)}`, {
      field,
      cause,
    });
  }
}

export function policyOf(config: ServerConfig): Policy {
  const { offlineAfterMs, heartbeatMs } = config;
  const maxConcurrency = maxConcurrencyOf(config);
  const publicUrl = config.externalUrl ?? config.advertiseUrl;
  if (offlineAfterMs < 3 * heartbeatMs) {
    throw new ApiError(
      'InvalidRequest',
      `offlineAfterMs (${offlineAfterMs}) must be at least three times heartbeatMs (${heartbeatMs}): one lost heartbeat must not lose a host`,
      {
        field: 'offlineAfterMs',
      },
    );
  }
  return {
    offlineAfterMs,
    hostDownAfterMs: Math.max(config.hostDownAfterMs, offlineAfterMs),
    ...(config.fencing === undefined ? {} : { fencing: true }),
    massLossHoldMs: config.massLossHoldMs,
    massLossIntervalMs: config.massLossIntervalMs,
    heartbeatMs,
    restartDelayMs: config.restartDelayMs,
    restartDelayMsMax: config.restartDelayMsMax,
    eventsKeptMs: config.eventsKeptMs,
    eventsMax: config.eventsMax,
    idempotencyKeptMs: config.idempotencyKeptMs,
    idempotencyMax: config.idempotencyMax,
    jobsKeptMs: config.jobsKeptMs,
    tasksKeptMs: config.tasksKeptMs,
    jobsMax: config.jobsMax,
    historyKeptMs: config.historyKeptMs,
    historyRevisionsMax: config.historyRevisionsMax,
    cpuAllocationRatio: config.cpuAllocationRatio,
    agingMs: config.agingMs,
    starvationMs: config.starvationMs,
    nominationMs: config.nominationMs,
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    ...(config.concurrencyLabel === undefined ? {} : { concurrencyLabel: config.concurrencyLabel }),
    ...(config.capacityMap === undefined ? {} : { capacityMap: config.capacityMap }),
    ...(publicUrl === undefined ? {} : { publicUrl }),
  };
}
