// The parts of the control plane that follow from the configuration and the process alone.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gibibyte, mebibyte } from '../../base/bytes.ts';
import { randomSecret, system, systemFetch, systemPrng } from '../../base/system.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { version } from '../../base/version.ts';
import { runDirectory } from '../checked-config.ts';
import type { ServerConfig } from '../config.ts';
import { minting } from '../http/identity/mint-token.ts';
import { createImageContent, type ImageContent, type InspectImage } from '../images/image-content.ts';
import { DirectoryRunStorage } from '../runs/directory-run-storage.ts';
import { RunFiles } from '../runs/run-files.ts';
import { mcpSettingsOf } from '../mcp/start-mcp.ts';
import { createPost } from '../outbox/webhooks/post.ts';
import { ReceiverGuard } from '../outbox/webhooks/receiver-guard.ts';
import type { JoinParts } from '../tls/join-routes.ts';

export async function configuredParts(
  config: ServerConfig,
  parts: {
    readonly name: string;
    readonly secure: boolean;
    readonly inspectImage: InspectImage | undefined;
    readonly clock: Clock;
    readonly log: Logger;
  },
) {
  const { name, secure, inspectImage, clock, log } = parts;
  const { scheduleTtlMs, scheduleWhenFull, sourceMetricNames, guestMetrics, tracing } = config;
  return {
    ...{ name, version, clock, log, scheduleTtlMs, scheduleWhenFull, sourceMetricNames, guestMetrics, tracing },
    idleMs: system.idleMs,
    prng: systemPrng(),
    fetch: systemFetch,
    ...imageContentOf(config, { inspectImage, owner: name, clock, log }),
    runFiles: await runFilesOf(config, clock),
    mcp: mcpSettingsOf(config),
    post: createPost(new ReceiverGuard(config.webhookAllow), clock),
    ...(secure ? { joining: joinPartsOf(config) } : {}),
    mint: minting(randomSecret),
    leaseMs: config.leaderLeaseMs,
  };
}

function joinPartsOf({ tlsCertificate }: ServerConfig): JoinParts {
  return { randomSecret, ownCertificate: tlsCertificate === undefined };
}

function imageContentOf(
  { imageDirectory, dataDirectory, imageGiBMax }: ServerConfig,
  parts: {
    readonly inspectImage: InspectImage | undefined;
    readonly owner: string;
    readonly clock: Clock;
    readonly log: Logger;
  },
): { readonly imageContent?: ImageContent } {
  const { inspectImage: inspect, owner, clock, log } = parts;
  if (inspect === undefined) return {};
  const directory = imageDirectory ?? join(dataDirectory, 'images');
  const bytesMax = imageGiBMax * 1024 ** 3;
  return { imageContent: createImageContent({ directory, bytesMax, inspect, owner, clock, log }) };
}

async function runFilesOf(config: ServerConfig, clock: Clock): Promise<RunFiles> {
  const { logMiBMax, artifactsMiBMax, blobGiBMax } = config;
  return new RunFiles({
    storage: new DirectoryRunStorage(await runDirectory(config)),
    limits: {
      logBytesMax: logMiBMax * mebibyte,
      artifactsBytesMax: artifactsMiBMax * mebibyte,
      projectBytesMax: blobGiBMax * gibibyte,
    },
    clock,
  });
}

/** Stays the same after a restart. */
export async function nameOf({ dataDirectory, listen }: ServerConfig): Promise<string> {
  const serverId = await readOrMake(join(dataDirectory, 'server-id'), () => randomSecret(16).toString('hex'));
  return `${serverId}@${listen}`;
}

async function readOrMake(path: string, make: () => string): Promise<string> {
  try {
    await writeFile(path, `${make()}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    await chmod(path, 0o600);
  }
  const text = (await readFile(path, 'utf8')).trim();
  if (text === '') throw new Error(`${path} is empty; delete it to have a new one made`);
  return text;
}
