// A host for the container driver's tests: a real podman, images of shell scripts, and the ground truth asked of podman itself, past the
// driver. One podman serves all tests of a file; each test has a folder of its own. Used by tests only.

import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageSpec } from '../../../api/agent-protocol.ts';
import { newId } from '../../../base/ids.ts';
import { sleep } from '../../../base/clock.ts';
import { type Logger, silentLogger } from '../../../base/log.ts';
import { type Prng, seededPrng } from '../../../base/prng.ts';
import { system, systemClock } from '../../../base/system.ts';
import type { ConformanceHost, GuestWords } from '../conformance.ts';
import type { Driver, GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { labels } from './container-config.ts';
import { type ContainerDriverOptions, createContainerDriver } from './driver.ts';
import { runs } from './group-state.ts';
import { startPodman, type TestImage, type TestPodman } from './test-podman.ts';
import { startRegistry, type TestRegistry } from './test-registry.ts';

export interface ContainerTestHost extends ConformanceHost {
  readonly podman: TestPodman;
  readonly registry: TestRegistry;
  readonly directory: string;
  open(change?: Partial<ContainerDriverOptions>): Driver;
  imageSpec(kind: string): ImageSpec;
  /** A guest of one of the images above, or of several. */
  spec(kind: string, change?: Partial<GuestSpec>): GuestSpec;
}

const words: GuestWords = {
  phases: ['pull', 'create', 'start', 'boot'],
  address: /^10\.2\d\d\.\d+\.\d+$/,
  ended: 'ContainersEnded',
  killed: 'ContainerExited',
  readyBy: 'engine',
};

const greeting = 'n=$(cat /boots || echo 0) 2>/dev/null; echo $((n+1)) >/boots; echo boot $n; echo berth: ready';
const idle = 'while true; do sleep 1000 & wait $!; done';

const images: readonly TestImage[] = [
  { name: 'obedient', script: `trap 'exit 0' TERM; ${greeting}; ${idle}` },
  { name: 'stubborn', script: `trap '' TERM; ${greeting}; ${idle}` },
  { name: 'short-lived', script: greeting },
  { name: 'failing', script: 'echo oh no; sleep 1; exit 3' },
  {
    name: 'chatterbox',
    script: 'while true; do echo "chatter chatter chatter chatter chatter chatter chatter chatter"; done',
  },
  { name: 'web', script: `echo hello >/www/index.html; exec httpd -f -p 80 -h /www` },
  { name: 'healthy-later', script: `sleep 2; echo well >/tmp/well; ${idle}`, healthCheck: 'test -e /tmp/well' },
];

const ids: Prng = seededPrng(1, 'container tests');

const testPortRange = { first: 20_000 + (system.pid() % 95) * 100, last: 20_099 + (system.pid() % 95) * 100 };

export interface ContainerTestHosts {
  make(log?: Logger): Promise<ContainerTestHost>;
  stop(): Promise<void>;
}

export async function startContainerTestHosts(): Promise<ContainerTestHosts> {
  const registry = await startRegistry();
  const podman = await startPodman({ insecureRegistry: registry.location });
  await podman.load(images);
  return {
    make: (log = silentLogger) => makeHost({ podman, registry, log }),
    async stop() {
      await podman.stop();
      await registry.stop();
    },
  };
}

async function makeHost({
  podman,
  registry,
  log,
}: {
  readonly podman: TestPodman;
  readonly registry: TestRegistry;
  readonly log: Logger;
}): Promise<ContainerTestHost> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'berth-test-')));
  const directory = join(base, 'guests, with spaces');
  const { engine } = podman;
  const containersOf = async (instanceId: string) =>
    Promise.all((await engine.list(`${labels.instance}=${instanceId}`)).map(({ Id }) => engine.inspect(Id)));
  const running = async (instanceId: string): Promise<number> =>
    (await containersOf(instanceId)).filter((container) => runs({ container })).length;
  const imageSpec = (kind: string): ImageSpec => ({
    source:
      kind === 'missing' || kind === 'endless'
        ? `docker://${registry.location}/${kind}/image:1`
        : `docker://localhost/${kind}:1`,
    decompress: 'none',
    format: 'container',
    nocloud: false,
    architecture: 'amd64',
    aliases: [],
    preload: false,
    defaults: {},
  });
  return {
    words,
    podman,
    registry,
    directory,
    imageSpec,
    spec: (kind, change = {}) => ({
      instanceId: newId('inst', systemClock.nowMs(), ids),
      incarnation: 1,
      name: 'web-1',
      hostname: 'web-1',
      cpus: 1,
      memoryMiB: 64,
      diskGiB: 0,
      imageName: kind,
      image: imageSpec(kind),
      ports: [],
      sshKeys: [],
      userData: '',
      ...change,
    }),
    open: (change = {}) =>
      createContainerDriver({
        directory,
        images: noImages,
        clock: systemClock,
        prng: seededPrng(1),
        log,
        portRange: testPortRange,
        socket: { configured: podman.socketPath },
        ...change,
      }),
    imageName: (kind) => kind,
    outside: {
      beside: true,
      async hold(instanceId, still) {
        for (const container of await containersOf(instanceId))
          if (container !== null) await engine[still ? 'pause' : 'unpause'](container.Id);
      },
      standsStill: async (instanceId) =>
        (await containersOf(instanceId)).every((container) => container?.State.Status === 'paused'),
    },
    async kill(instanceId) {
      for (const container of await containersOf(instanceId))
        if (container !== null) await engine.kill(container.Id, 'SIGKILL');
      while ((await running(instanceId)) > 0) await sleep(systemClock, 5);
    },
    async damage(instanceId) {
      for (const name of ['guest.json', 'guest.json.old'])
        await writeFile(join(directory, instanceId, name), '{"version": 1, "instan');
    },
    runningCopies: running,
    async traces(instanceId) {
      const containers = await engine.list(`${labels.instance}=${instanceId}`);
      const files = await readdir(join(directory, instanceId)).catch(() => null);
      return [
        ...containers.map(({ Id }) => `container ${Id}`),
        ...(files === null ? [] : ['folder', ...files.toSorted()]),
      ];
    },
    portTaken,
    async occupyPort() {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve));
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('no port');
      return { port: address.port, release: () => new Promise<void>((resolve) => server.close(() => resolve())) };
    },
    dispose: () => rm(base, { recursive: true, force: true }),
  };
}

/** Containers come from their engine. */
const noImages: ContainerDriverOptions['images'] = {
  ensure: () => Promise.reject(new DriverError('Internal', 'no container needs a disk')),
  list: () => Promise.resolve([]),
};

function portTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(true));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(false)));
  });
}
