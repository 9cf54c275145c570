// The TLS identity of this server: its own leaf from the fleet's authority, or configured files; renewed and read again while the server
// runs, without a restart. Its private key lies in the data directory and never leaves this machine.

import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { servingOf, openAuthority } from '../../core/operations/access/authority.ts';
import { keys } from '../../core/state/keys.ts';
import type { Authority } from '../../core/state/records.ts';
import { readTls } from '../checked-config.ts';
import type { ServerConfig } from '../config.ts';
import { type Decider, decideAndCommit } from '../decide.ts';
import type { TlsIdentity } from '../http/serve.ts';
import { isAddress, issueServerLeaf, makeAuthority, type ServerLeaf } from './certificates.ts';
import { fingerprintOf, shortFingerprint } from '../../base/tls/fingerprint.ts';

export interface ServerTlsParts {
  readonly config: ServerConfig;
  readonly decider: Decider;
  readonly randomSecret: (length: number) => Uint8Array;
  readonly log: Logger;
}

const checkEveryMs = 60_000;

/** The authority of the store; made when there is none. */
export async function authorityOf(parts: Omit<ServerTlsParts, 'config' | 'log'>): Promise<Authority> {
  const { decider, randomSecret } = parts;
  const known = decider.cache.committed('authority', keys.authority);
  if (known) return known.value;
  const made = await makeAuthority({ nowMs: Math.floor(decider.clock.nowMs()), randomSecret });
  const { decision } = await decideAndCommit(decider, (snapshot) => openAuthority(snapshot, made));
  return decision.authority;
}

export class ServerTls {
  readonly #parts: ServerTlsParts;
  readonly #clock: Clock;
  #identity: TlsIdentity;
  /** Sent with each answer, so it is not computed for each. */
  #told: { readonly of: Authority; readonly text: string } | undefined;
  #timer: Timer | undefined;
  #working: Promise<void> | undefined;
  #forget: (() => void) | undefined;
  #stopped = false;

  private constructor(parts: ServerTlsParts, identity: TlsIdentity) {
    this.#parts = parts;
    this.#clock = parts.decider.clock;
    this.#identity = identity;
  }

  /** `sha256:...` of the root that clients pin; undefined: the certificate is configured. */
  get caFingerprint(): string | undefined {
    const { config, decider } = this.#parts;
    const authority = decider.cache.committed('authority', keys.authority)?.value;
    if (config.tlsCertificate !== undefined || authority === undefined) return undefined;
    return fingerprintOf(servingOf(authority).root.certificate);
  }

  /** For clients that pin the authority (`authoritiesHeader`); undefined: the certificate is configured. */
  get authoritiesTold(): string | undefined {
    const { config, decider } = this.#parts;
    const authority = decider.cache.committed('authority', keys.authority)?.value;
    if (config.tlsCertificate !== undefined || authority === undefined) return undefined;
    if (this.#told?.of !== authority) {
      const digests = authority.generations.map(({ root }) => shortFingerprint(root.certificate));
      this.#told = { of: authority, text: digests.join() };
    }
    return this.#told.text;
  }

  /** Throws `InvalidRequest` when the configured files cannot be used. */
  static async open(parts: ServerTlsParts): Promise<ServerTls> {
    return new ServerTls(parts, await identityNow(parts, await authorityOf(parts)));
  }

  get identity(): TlsIdentity {
    return this.#identity;
  }

  /** Calls `apply` with every identity that follows. */
  start(apply: (identity: TlsIdentity) => void): void {
    this.#forget = this.#parts.decider.cache.onCommitted((key) => {
      if (key === keys.authority) this.check(apply);
    });
    this.#again(apply);
  }

  /** Looks now whether files or authority have changed, or the certificate is to be renewed. */
  check(apply: (identity: TlsIdentity) => void): void {
    if (this.#stopped) return;
    this.#working ??= this.#renew(apply).finally(() => {
      this.#working = undefined;
      this.#again(apply);
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#forget?.();
    await this.#working;
  }

  #again(apply: (identity: TlsIdentity) => void): void {
    this.#timer?.cancel();
    if (!this.#stopped) this.#timer = this.#clock.setTimer(checkEveryMs, () => this.check(apply), { background: true });
  }

  async #renew(apply: (identity: TlsIdentity) => void): Promise<void> {
    const { log } = this.#parts;
    try {
      const next = await identityNow(this.#parts, await authorityOf(this.#parts));
      const { cert, key, ca } = this.#identity;
      if (next.cert === cert && next.key === key && next.ca === ca) return;
      apply(next);
      this.#identity = next;
      log.info('the TLS certificate was changed', { validTo: new X509Certificate(next.cert).validTo });
    } catch (error) {
      log.error('cannot change the TLS certificate; the present one is kept', { error: describeError(error) });
    }
  }
}

async function identityNow(parts: ServerTlsParts, authority: Authority): Promise<TlsIdentity> {
  const ca = authority.generations.map(({ root }) => root.certificate).join('\n');
  const configured = await readTls(parts.config);
  const leaf = configured ?? (await ownLeaf(parts, authority));
  return { cert: leaf.cert, key: leaf.key, ca };
}

async function ownLeaf(parts: ServerTlsParts, authority: Authority): Promise<ServerLeaf> {
  const { config, decider, randomSecret, log } = parts;
  const directory = join(config.dataDirectory, 'tls');
  const paths = { cert: join(directory, 'server.crt'), key: join(directory, 'server.key') };
  const names = serverNames(config);
  const generation = servingOf(authority);
  const nowMs = Math.floor(decider.clock.nowMs());
  const [cert, key] = await Promise.all([paths.cert, paths.key].map((path) => readFile(path, 'utf8').catch(() => '')));
  if (cert && key && serves({ cert, key }, { names, issuer: generation.servers.certificate, nowMs }))
    return { cert, key };
  const leaf = await issueServerLeaf({ generation, names, nowMs, randomSecret });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // Two files cannot change in one step; after a crash between them they do not fit, and both are made again.
  await replaceFile(paths.key, leaf.key);
  await replaceFile(paths.cert, leaf.cert);
  await replaceFile(join(config.dataDirectory, 'ca.pem'), generation.root.certificate);
  log.info('issued a certificate for this server', { names: names.join(', ') });
  return leaf;
}

async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text.endsWith('\n') ? text : `${text}\n`, { mode: 0o600 });
  await chmod(`${path}.new`, 0o600);
  await rename(`${path}.new`, path);
}

/** Whether a leaf can be used on: for these names, by this issuer, and not past two thirds of its life. */
function serves(
  leaf: ServerLeaf,
  wanted: { readonly names: readonly string[]; readonly issuer: string; readonly nowMs: number },
): boolean {
  try {
    createSecureContext(leaf); // the key fits
    const certificate = new X509Certificate(leaf.cert);
    const issuer = new X509Certificate(wanted.issuer);
    const fromMs = certificate.validFromDate.getTime();
    const toMs = certificate.validToDate.getTime();
    return (
      certificate.checkIssued(issuer) &&
      certificate.verify(issuer.publicKey) &&
      wanted.nowMs > fromMs &&
      wanted.nowMs < fromMs + ((toMs - fromMs) * 2) / 3 &&
      wanted.names.every((name) =>
        isAddress(name) ? certificate.checkIP(name) !== undefined : certificate.checkHost(name) !== undefined,
      )
    );
  } catch {
    return false; // damaged: a new one is made
  }
}

/** Where this server can be reached, as far as it knows: for the whole machine when it listens on all addresses. */
export function serverNames({
  listen,
  advertiseUrl,
  externalUrl,
  tlsNames,
}: Pick<ServerConfig, 'listen' | 'advertiseUrl' | 'externalUrl' | 'tlsNames'>): string[] {
  const host = listen.slice(0, listen.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  const everywhere = host === '0.0.0.0' || host === '::';
  const ofUrl = (url: string | undefined): string[] =>
    url === undefined ? [] : [new URL(url).hostname.replace(/^\[|\]$/g, '')];
  const ofMachine = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => address);
  return [
    ...new Set([
      ...['localhost', '127.0.0.1', '::1', hostname()],
      ...(everywhere ? ofMachine : [host]),
      ...ofUrl(advertiseUrl),
      ...ofUrl(externalUrl),
      ...tlsNames,
    ]),
  ].filter((name) => isAddress(name) || /^[A-Za-z0-9_*]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$/.test(name));
}
