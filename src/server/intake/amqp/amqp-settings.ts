// What this control plane does with the broker, from its configuration. The URL has a password: it is neither logged nor
// put into a message.

import { readFileSync } from 'node:fs';
import { ApiError } from '../../../api/errors.ts';
import { type TlsFile, TlsFileError, type TlsFiles, readTlsFiles } from '../../../base/tls/tls-files.ts';
import { isDecodableUrl } from '../../../base/decodable-url.ts';
import { describeError } from '../../../base/log.ts';
import type { ServerConfig } from '../../config.ts';

export interface AmqpSettings {
  readonly url: string;
  /** For `amqps:`; absent: what Node trusts, and no certificate. */
  readonly tls?: TlsFiles;
  readonly exchange: string;
  readonly queue: string;
  readonly routingKey: string;
  readonly resultExchange: string;
  readonly deadLetterExchange: string;
  readonly deadLetterQueue: string;
  readonly project: string;
  /** Intake stops while this many of its jobs wait for a place; also how many messages are held at once. */
  readonly waitingMax: number;
  /** Default: direct. */
  readonly exchangeType?: 'topic';
  /** The setting to name when the broker refuses; default: the variable of each name. */
  readonly namedBy?: string;
  /** Absent: a message is not tried again. */
  readonly retry?: RetrySettings;
}

export interface RetrySettings {
  readonly queue: string;
  readonly delayMs: number;
  /** Attempts in all. */
  readonly attemptsMax: number;
}

/** Messages may have 16 MiB each, and their bodies are in memory before their size is known. */
export const prefetchMax = 64;
const queueDefault = 'solstice.jobs.v1';
const deadLetterExchangeDefault = 'solstice.dlx';

/** Undefined: no broker is configured. */
export function amqpSettingsOf(config: ServerConfig, maxConcurrency: number | undefined): AmqpSettings | undefined {
  const { amqpExchange: exchange, amqpQueue: queue } = config;
  const url = urlOf(config);
  if (url === undefined) return undefined;
  const tls = tlsOf(config, url);
  const prefetch = config.amqpPrefetch ?? maxConcurrency ?? prefetchMax;
  return {
    url,
    ...(tls === undefined ? {} : { tls }),
    exchange,
    queue,
    routingKey: config.amqpRoutingKey,
    resultExchange: config.amqpResultExchange ?? exchange,
    // Another queue has letters of its own: a fanout exchange would mix them.
    deadLetterExchange: queue === queueDefault ? deadLetterExchangeDefault : `${queue}.dlx`,
    deadLetterQueue: `${queue}.dlq`,
    project: config.amqpProject,
    waitingMax: Math.min(prefetch, maxConcurrency ?? prefetchMax, prefetchMax),
  };
}

/** With the password of its file, if there is one. */
function urlOf({ amqpUrl, amqpPasswordFile }: ServerConfig): string | undefined {
  if (amqpUrl !== undefined) assertUrl(amqpUrl);
  if (amqpPasswordFile === undefined) return amqpUrl;
  if (amqpUrl === undefined) throw passwordFileError('there is no amqpUrl (AMQP_URL) that it is for');
  const url = new URL(amqpUrl);
  if (url.password !== '') throw passwordFileError('amqpUrl (AMQP_URL) has a password too; remove one of the two');
  if (url.username === '')
    throw passwordFileError('amqpUrl (AMQP_URL) must name the user: amqp://USER@HOST:PORT/VHOST');
  url.password = encodeURIComponent(passwordIn(amqpPasswordFile));
  return url.href;
}

function passwordIn(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw passwordFileError(`cannot read ${path}: ${describeError(error)}`, error);
  }
  if (text === '' || text.includes('\n')) throw passwordFileError(`${path} must have the password as its only line`);
  return text;
}

function passwordFileError(message: string, cause?: unknown): ApiError {
  return new ApiError('InvalidRequest', `amqpPasswordFile (AMQP_PASSWORD_FILE): ${message}`, {
    field: 'amqpPasswordFile',
    cause,
  });
}

function tlsOf({ amqpCa, amqpCertificate, amqpKey }: ServerConfig, url: string): TlsFiles | undefined {
  const given = Object.entries({ amqpCa, amqpCertificate, amqpKey }).filter(([, path]) => path !== undefined);
  const [field] = given[0] ?? [];
  if (field === undefined) return undefined;
  if (!url.startsWith('amqps:'))
    throw new ApiError('InvalidRequest', `${field}: amqpUrl must begin with amqps: for TLS`, { field });
  if ((amqpCertificate === undefined) !== (amqpKey === undefined))
    throw new ApiError('InvalidRequest', `${field}: amqpCertificate and amqpKey go together`, { field });
  const file = (setting: string, path: string | undefined): TlsFile | undefined =>
    path === undefined ? undefined : { setting, path };
  try {
    return readTlsFiles({
      ca: file('amqpCa', amqpCa),
      cert: file('amqpCertificate', amqpCertificate),
      key: file('amqpKey', amqpKey),
    });
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    throw new ApiError('InvalidRequest', error.message, { field: error.setting, cause: error });
  }
}

/** Of the queue of requests to /schedule. Undefined: no broker is configured for it. */
export function taskSettingsOf(config: ServerConfig): AmqpSettings | undefined {
  const { scheduleAmqpUrl: url, scheduleAmqpExchange: exchange, scheduleAmqpQueue: queue } = config;
  if (url === undefined) return undefined;
  assertUrl(url, 'scheduleAmqpUrl');
  const tls = url.startsWith('amqps:') ? tlsOf(config, url) : undefined;
  return {
    url,
    ...(tls === undefined ? {} : { tls }),
    exchange,
    exchangeType: 'topic',
    queue,
    routingKey: queue,
    resultExchange: exchange,
    deadLetterExchange: `${queue}.dlx`,
    deadLetterQueue: `${queue}.dlq`,
    project: config.scheduleAmqpProject,
    waitingMax: prefetchMax,
    namedBy: 'scheduleAmqpUrl',
    retry: {
      queue: `${queue}.retry`,
      delayMs: config.scheduleRetryDelayMs,
      attemptsMax: config.scheduleAttemptsMax,
    },
  };
}

/** The parser's own message has the URL, with its password. */
function assertUrl(url: string, field = 'amqpUrl (AMQP_URL)'): void {
  if (isDecodableUrl(url)) return;
  throw new ApiError(
    'InvalidRequest',
    `${field} is not a URL: amqp://USER:PASSWORD@HOST:PORT/VHOST; a % in the password is written as %25`,
    { field: field.split(' ', 1)[0] ?? field },
  );
}

/** The address for logs and messages: without user name and password. */
export function placeOfBroker(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
