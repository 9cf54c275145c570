// A whole fleet in this process: control plane with the embedded store, and one host's agent. For `dev` and
// `quickstart`.

import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder, needsPassage } from '../agent/agent-folders.ts';
import { AgentConfig } from '../agent/config.ts';
import type { AcceleratorSetting } from '../agent/drivers/accelerator-setting.ts';
import { inspectImage } from '../agent/images/unpack/inspect-image.ts';
import { startAgent } from '../agent/run.ts';
import { parse } from '../api/parse.ts';
import type { Logger } from '../base/log.ts';
import { system } from '../base/system.ts';
import { ServerConfig } from '../server/config.ts';
import { type RunningServer, startServer } from '../server/run.ts';
import { hostNameOf } from './agent-process.ts';

export interface LocalFleetOptions {
  /** Absolute. `server/` and `agent/` are created in it. */
  readonly dataDirectory: string;
  /** Absolute. Guests may use the images in it. */
  readonly imageDirectory: string;
  /** Absent: 127.0.0.1:7070, or any free port when that is taken. */
  readonly listen?: string | undefined;
  readonly drivers: readonly string[];
  /** Absent: `auto`. */
  readonly accelerator?: AcceleratorSetting | undefined;
  readonly hostName?: string | undefined;
  readonly libvirtUri?: string | undefined;
  readonly libvirtNetwork?: string | undefined;
  readonly imageMap?: string | undefined;
  /** Limits and broker. */
  readonly intake?: Partial<ServerConfig> | undefined;
}

export interface LocalFleet {
  readonly url: string;
  readonly operatorToken: string;
  readonly hostName: string;
  readonly agentDirectory: string;
  /** The state that a guest's hypervisor reports, for users; undefined: it reports none, or nothing runs. */
  describeGuest(instanceId: string): Promise<string | undefined>;
  /** Resolves when the agent fails permanently. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

const imageRootDefault = '/var/lib/berth/images';
const listenDefault = '127.0.0.1:7070';

export async function startLocalFleet(options: LocalFleetOptions, { log }: { log: Logger }): Promise<LocalFleet> {
  const { dataDirectory } = options;
  await makeFolder(dataDirectory, { passable: needsPassage(options.drivers, { ownUsers: system.userId() === 0 }) });
  const server = await startLocalServer(options, log.with({ part: 'server' }));
  try {
    const hostName = options.hostName ?? hostNameOf(hostname());
    const agentDirectory = join(dataDirectory, 'agent');
    const tokenFile = join(dataDirectory, 'host.token');
    await writeFile(tokenFile, `${server.hostToken(hostName)}\n`, { mode: 0o600 });
    const config = parse(AgentConfig, {
      serverUrl: server.url,
      hostName,
      tokenFile,
      dataDirectory: agentDirectory,
      drivers: [...options.drivers],
      ...(options.libvirtUri === undefined ? {} : { libvirtUri: options.libvirtUri }),
      ...(options.libvirtNetwork === undefined ? {} : { libvirtNetwork: options.libvirtNetwork }),
      ...(options.accelerator === undefined ? {} : { accelerator: options.accelerator }),
      imageRoots: [options.imageDirectory, imageRootDefault],
      repositoryNetworks: ['private'],
    });
    const agent = await startAgent(config, { log: log.with({ part: 'agent' }) });
    return {
      url: server.url,
      operatorToken: server.operatorToken,
      hostName: agent.hostName,
      agentDirectory,
      describeGuest: (instanceId) => agent.describeGuest(instanceId),
      failed: agent.failed,
      async close() {
        await agent.close();
        await server.close();
      },
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}

async function startLocalServer(
  { dataDirectory, listen, imageMap, intake }: LocalFleetOptions,
  log: Logger,
): Promise<RunningServer> {
  const start = (address: string): Promise<RunningServer> =>
    startServer(
      parse(ServerConfig, {
        ...intake,
        listen: address,
        dataDirectory: join(dataDirectory, 'server'),
        ...(imageMap === undefined ? {} : { imageMap }),
      }),
      { log, inspectImage },
    );
  try {
    return await start(listen ?? listenDefault);
  } catch (error) {
    if (listen !== undefined || !isPortTaken(error)) throw error;
    return start('127.0.0.1:0');
  }
}

function isPortTaken(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if ('code' in each && each.code === 'EADDRINUSE') return true;
  }
  return false;
}
