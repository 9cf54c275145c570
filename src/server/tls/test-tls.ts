// For tests: a server that speaks TLS with its own authority, and requests of hosts.

import 'reflect-metadata';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { createClient, type FetchLike } from '../../api/client/client.ts';
import { parse } from '../../api/parse.ts';
import { TlsFetch, type TlsTrust } from '../../base/tls/tls-fetch.ts';
import { type Clock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { ServerConfig } from '../config.ts';
import { type RunningServer, startServer } from '../run.ts';

export interface TestTls {
  readonly server: RunningServer;
  readonly directory: string;
  /** PEM of the root. */
  readonly ca: string;
  client(trust: TlsTrust, token?: string): ReturnType<typeof createClient>;
  close(): Promise<void>;
}

export async function startTlsServer(more: Readonly<Record<string, unknown>> = {}, clock?: Clock): Promise<TestTls> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-tls-'));
  const config = { listen: '127.0.0.1:0', dataDirectory: directory, store: 'memory:', tls: true, ...more };
  const server = await startServer(parse(ServerConfig, config), { log: silentLogger, ...(clock ? { clock } : {}) });
  const fetches: TlsFetch[] = [];
  const client = (trust: TlsTrust, token?: string) => {
    const fetch = new TlsFetch(() => trust);
    fetches.push(fetch);
    const send: FetchLike = fetch.fetch;
    return createClient({ fetch: send, url: server.url, ...(token === undefined ? {} : { token }) });
  };
  const { readFile } = await import('node:fs/promises');
  return {
    server,
    directory,
    ca: await readFile(join(directory, 'ca.pem'), 'utf8'),
    client,
    async close() {
      for (const fetch of fetches) fetch.close();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}

export interface HostKey {
  readonly csr: string;
  /** PKCS #8, PEM. */
  readonly key: string;
}

export async function hostKey(name = 'CN=anything'): Promise<HostKey> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm: algorithm });
  const key = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { csr: csr.toString('pem'), key };
}
