// Certificates and keys of settings that name files, for connections to other systems. What is wrong with a file is said with its setting,
// and never with what is in it.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { describeError } from '../log.ts';

/** Paths; each key is the name of the setting in messages. */
export interface TlsFileSettings {
  /** PEM file of the only authorities that are trusted. */
  readonly ca?: TlsFile | undefined;
  /** PEM files of the certificate that is shown to the server, and of its key. */
  readonly cert?: TlsFile | undefined;
  readonly key?: TlsFile | undefined;
}

export interface TlsFile {
  /** For messages. */
  readonly setting: string;
  readonly path: string;
}

/** As Node's TLS takes them. */
export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export class TlsFileError extends Error {
  readonly setting: string;

  constructor(setting: string, fault: string, cause?: unknown) {
    super(`${setting}: ${fault}`, { cause });
    this.setting = setting;
  }
}

/** Throws `TlsFileError`. A certificate and its key are given together; the caller has seen to that. */
export function readTlsFiles({ ca, cert, key }: TlsFileSettings): TlsFiles {
  const files: TlsFiles = {
    ...(ca === undefined ? {} : { ca: certificatesIn(ca) }),
    ...(cert === undefined ? {} : { cert: certificatesIn(cert) }),
    ...(key === undefined ? {} : { key: textOf(key) }),
  };
  if (key === undefined || cert === undefined) return files;
  try {
    createSecureContext({ cert: files.cert, key: files.key });
  } catch (cause) {
    throw new TlsFileError(key.setting, `${key.path} is no key of the certificate in ${cert.path}`, cause);
  }
  return files;
}

function certificatesIn(file: TlsFile): string {
  const text = textOf(file);
  try {
    // Node itself takes a file without certificates, and then trusts no server.
    void new X509Certificate(text);
    return text;
  } catch (cause) {
    throw new TlsFileError(file.setting, `${file.path} holds no certificate in PEM form`, cause);
  }
}

function textOf({ setting, path }: TlsFile): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new TlsFileError(setting, `cannot read ${path}: ${describeError(cause)}`, cause);
  }
}

/**
 * What a failed handshake is about: the authority of the server's certificate, the names in it, or the certificate that the server wants
 * of us. Undefined: something else.
 */
export function tlsFault(error: unknown): 'authority' | 'name' | 'own' | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'name';
  if (/^(UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|CERT_SIGNATURE)/.test(code)) return 'authority';
  return /^ERR_SSL_.*ALERT/.test(code) ? 'own' : undefined;
}
