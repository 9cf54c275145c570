// What the process makes of the configured event buses: credentials are read, and what does not fit together is refused with its field.

import { readFileSync } from 'node:fs';
import { ApiError } from '../../../api/errors.ts';
import { describeError } from '../../../base/log.ts';
import { readTlsFiles, type TlsFile, TlsFileError, type TlsFiles } from '../../../base/tls/tls-files.ts';
import type { BusConfig } from './bus-config.ts';

export interface BusSettings {
  readonly name: string;
  readonly kind: BusConfig['kind'];
  readonly url: string;
  /** The stream, exchange or topic. */
  readonly place: string;
  readonly login?: { readonly user: string; readonly password: string };
  readonly token?: string;
  /** Absent: no TLS, unless the URL asks for it. */
  readonly tls?: TlsFiles;
}

const kinds = {
  nats: { schemes: ['nats', 'tls'], secure: 'tls', field: 'stream', place: 'BERTH_EVENTS' },
  amqp: { schemes: ['amqp', 'amqps'], secure: 'amqps', field: 'exchange', place: 'berth' },
  kafka: { schemes: ['kafka', 'kafkas'], secure: 'kafkas', field: 'topic', place: 'berth-events' },
} as const;

/** Throws `InvalidRequest`, which names the field. */
export function busSettingsOf(configs: readonly BusConfig[]): readonly BusSettings[] {
  const settings = configs.map((config, index) => settingsOf(config, `eventBus[${index}]`));
  for (const [index, { name }] of settings.entries())
    if (settings.findIndex((other) => other.name === name) !== index)
      throw refused(`eventBus[${index}].name`, `another event bus is called ${name}`);
  return settings;
}

function settingsOf(config: BusConfig, path: string): BusSettings {
  const { kind, url, user, passwordFile, tokenFile } = config;
  const { schemes, secure, field, place } = kinds[kind];
  const scheme = url.slice(0, url.indexOf(':'));
  if (!schemes.some((known) => known === scheme))
    throw refused(`${path}.url`, `the URL of kind ${kind} begins with ${schemes.join(':// or ')}://`);
  for (const other of ['stream', 'exchange', 'topic'] as const)
    if (other !== field && config[other] !== undefined) throw refused(`${path}.${other}`, `kind ${kind} has none`);
  if (kind === 'nats' && /[.]/.test(config.stream ?? ''))
    throw refused(`${path}.stream`, 'the name of a stream has no dots');
  if ((user === undefined) !== (passwordFile === undefined))
    throw refused(`${path}.user`, 'user and passwordFile go together');
  if (tokenFile !== undefined && (kind !== 'nats' || user !== undefined))
    throw refused(`${path}.tokenFile`, 'only NATS takes a token, and not beside a user');
  const isSecure = scheme === secure;
  // SASL PLAIN shows the password to everyone on the way.
  if (kind === 'kafka' && user !== undefined && !isSecure)
    throw refused(`${path}.user`, 'a password for Kafka is sent over TLS only: the URL must begin with kafkas://');
  const tls = tlsOf(config, { path, isSecure, secure });
  return {
    name: config.name ?? kind,
    kind,
    url,
    place: config[field] ?? place,
    ...(user === undefined || passwordFile === undefined
      ? {}
      : { login: { user, password: lineOf(passwordFile, `${path}.passwordFile`) } }),
    ...(tokenFile === undefined ? {} : { token: lineOf(tokenFile, `${path}.tokenFile`) }),
    ...(isSecure ? { tls } : {}),
  };
}

function tlsOf(
  { caFile, certificateFile, keyFile }: BusConfig,
  { path, isSecure, secure }: { readonly path: string; readonly isSecure: boolean; readonly secure: string },
): TlsFiles {
  const given = Object.entries({ caFile, certificateFile, keyFile }).find(([, file]) => file !== undefined);
  if (given !== undefined && !isSecure) throw refused(`${path}.${given[0]}`, `the URL must begin with ${secure}://`);
  if ((certificateFile === undefined) !== (keyFile === undefined))
    throw refused(`${path}.certificateFile`, 'certificateFile and keyFile go together');
  const file = (setting: string, at: string | undefined): TlsFile | undefined =>
    at === undefined ? undefined : { setting: `${path}.${setting}`, path: at };
  try {
    return readTlsFiles({
      ca: file('caFile', caFile),
      cert: file('certificateFile', certificateFile),
      key: file('keyFile', keyFile),
    });
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    throw new ApiError('InvalidRequest', error.message, { field: error.setting, cause: error });
  }
}

function lineOf(file: string, field: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw refused(field, `cannot read ${file}: ${describeError(error)}`);
  }
  if (text === '' || text.includes('\n')) throw refused(field, `${file} must have the secret as its only line`);
  return text;
}

function refused(field: string, message: string): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${message}`, { field });
}
