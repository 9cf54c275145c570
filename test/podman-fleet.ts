// A fleet of one server and one host that runs containers with a real podman, for tests.

import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPodman, type TestPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type Fleet, runBerth, startFleet } from './processes.ts';

export interface PodmanFleet {
  readonly fleet: Fleet;
  readonly podman: TestPodman;
  /** Removed at the end. */
  readonly directory: string;
  /** Runs the command line; what it prints. Throws when it fails. */
  berth(...argv: string[]): Promise<string>;
  /** Instances are removed first. */
  stop(): Promise<void>;
}

/**
 * A web server in a script, at the end. The first process of a container ignores a SIGTERM that it has no trap for, and each of its stops would
 * take the whole grace.
 */
export function serving(folder: string, port = '80'): string {
  return `trap "exit 0" TERM; httpd -f -p ${port} -h ${folder} & wait`;
}

/** `images`: what the engine has; `berth image add` makes them known. */
export async function startPodmanFleet(images: Parameters<TestPodman['load']>[0]): Promise<PodmanFleet> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'berth-podman-')));
  const podman = await startPodman();
  await podman.load(images);
  const engine = { drivers: ['container'], containerEngine: `unix://${podman.socketPath}` };
  const fleet = await startFleet(join(directory, 'fleet'), engine);
  return {
    fleet,
    podman,
    directory,
    async berth(...argv) {
      const { stdout, stderr, code } = await runBerth(argv, fleet.environment);
      if (code !== 0) throw new Error(`berth ${argv.join(' ')} ended with ${code}: ${stderr}`);
      return stdout;
    },
    async stop() {
      await fleet.removeAll();
      await fleet.stop();
      await podman.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
