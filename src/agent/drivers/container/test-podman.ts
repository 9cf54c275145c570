// A private podman for tests: the real one, as root, with storage, state, locks and network of its own below a temporary folder, so that it
// sees nothing of the machine's containers. Its images are made on the spot, of a static busybox.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../base/clock.ts';
import { system, systemClock } from '../../../base/system.ts';
import type { Engine } from './engine.ts';
import { EngineClient } from './engine-client.ts';
import { labels } from './container-config.ts';
import { tarOf } from './test-tar.ts';

export interface TestPodman {
  readonly socketPath: string;
  /** A connection of the test's own: the truth, past the driver. */
  readonly engine: Engine;
  load(images: readonly TestImage[]): Promise<void>;
  /** A network beside that of the engine. Returns the first three numbers of its addresses. */
  addNetwork(name: string): Promise<string>;
  /** The service dies, as by SIGKILL; containers run on. */
  kill(): Promise<void>;
  /** After `kill`. */
  start(): Promise<void>;
  /** With all containers. */
  stop(): Promise<void>;
}

export interface TestImage {
  /** `localhost/NAME:1`. */
  readonly name: string;
  /** For its shell. */
  readonly script: string;
  /** A shell command that says whether it is well. */
  readonly healthCheck?: string;
}

const busybox = '/usr/bin/busybox';

/** Why there can be none here; undefined: there can. */
export function whyNoPodman(): string | undefined {
  if (system.userId() !== 0) return 'only root may start a podman of its own';
  for (const [program, name] of [
    ['/usr/bin/podman', 'podman'],
    ['/usr/sbin/runc', 'runc'],
    ['/usr/lib/podman/netavark', 'netavark'],
    ['/usr/sbin/iptables', 'iptables'],
    [busybox, 'busybox-static'],
  ] as const) {
    if (!existsSync(program)) return `${name} is not installed (package ${name})`;
  }
  return inChroot() && !unshares('unchanged') ? 'mount namespaces do not work here' : undefined;
}

/** Why no program can be run in a container that runs, nor its health be checked; undefined: it can. */
export const whyNoExecution = (): string | undefined =>
  inChroot() ? 'in a chroot a program that enters a container finds itself outside of it' : undefined;

const unshares = (propagation: string): boolean =>
  spawnSync('unshare', ['--mount', '--propagation', propagation, 'true']).status === 0;

/** There mounts cannot be made private, for its root is no mount point. */
const inChroot = (): boolean => !unshares('private');

/**
 * For a chroot: all that is mounted, seen once more below a root that is a mount point, since runc asks for one. Bound below a mount that
 * is private, so that no other process sees it there.
 */
const newRoot = `set -e
mount -t tmpfs tmpfs "$1"
mount --make-private "$1"
mkdir "$1/root"
mount --rbind / "$1/root"
mount --make-rprivate "$1/root"
exec chroot "$1/root" sh -c 'echo here; exec sleep infinity'
`;

interface Mounts {
  /** Runs a program there, and no other. */
  readonly enter: readonly string[];
  end(): Promise<void>;
}

async function startMounts(): Promise<Mounts> {
  if (!inChroot()) return { enter: ['--pdeathsig', 'KILL'], end: () => Promise.resolve() };
  const root = await mkdtemp(join(tmpdir(), 'berth-root-'));
  const words = [
    '--pdeathsig',
    'KILL',
    'unshare',
    '--mount',
    '--propagation',
    'unchanged',
    'sh',
    '-c',
    newRoot,
    'sh',
    root,
  ];
  const holder = spawn('setpriv', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await Promise.race([
    once(holder.stdout, 'data'),
    once(holder, 'exit').then(([code]) => {
      throw new Error(`no mounts of its own for podman: unshare ended with ${String(code)}`);
    }),
  ]);
  return {
    enter: ['--pdeathsig', 'KILL', 'nsenter', '--target', String(holder.pid), '--mount', '--root', '--wd'],
    async end() {
      const ended = once(holder, 'exit');
      holder.kill('SIGKILL');
      await ended;
      await rmdir(root).catch(() => {}); // never with what is in it: that would be the whole machine
    },
  };
}

/** `insecureRegistry`: host and port of one that speaks HTTP. */
export async function startPodman({
  insecureRegistry,
}: {
  readonly insecureRegistry?: string;
} = {}): Promise<TestPodman> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-podman-'));
  const socketPath = join(folder, 'podman.sock');
  const engine = new EngineClient({ socketPath: () => Promise.resolve(socketPath), clock: systemClock });
  await writeConfiguration(folder, insecureRegistry);
  const mounts = await startMounts();
  let service: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const flags = ['--root', 'store', '--runroot', 'run', '--tmpdir', 'tmp'].map((word, i) =>
      i % 2 === 0 ? word : join(folder, word),
    );
    const words = [
      ...mounts.enter, // and dies with the test, however that ends
      'podman',
      ...flags,
      '--storage-driver',
      'vfs',
      '--cgroup-manager',
      'cgroupfs',
    ];
    const started = spawn('setpriv', [...words, 'system', 'service', '--time', '0', `unix://${socketPath}`], {
      cwd: folder, // a container that had not enough memory leaves a file "oom" there
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: folder,
        TMPDIR: folder,
        CONTAINERS_CONF: join(folder, 'containers.conf'),
        CONTAINERS_REGISTRIES_CONF: join(folder, 'registries.conf'),
      },
    });
    service = started;
    let said = '';
    started.stderr?.on('data', (bytes: Buffer) => {
      said = (said + bytes.toString()).slice(-4000);
    });
    for (;;) {
      if (started.exitCode !== null) throw new Error(`podman does not start: ${said}`);
      const answers = await engine.version().then(
        () => true,
        () => false,
      );
      if (answers) return;
      await sleep(systemClock, 20);
    }
  };
  const kill = async (): Promise<void> => {
    if (service === undefined || service.exitCode !== null || service.signalCode !== null) return;
    const ended = once(service, 'exit');
    service.kill('SIGKILL');
    await ended;
    await rm(socketPath, { force: true });
  };
  await start();
  return {
    socketPath,
    engine,
    start,
    kill,
    load: async (images) => load(socketPath, await archiveOf(images)),
    addNetwork: (name) =>
      writeNetwork(join(folder, 'network'), name, createHash('sha256').update(`${folder} ${name}`).digest('hex')),
    async stop() {
      for (let left = await engine.list(labels.directory); left.length > 0; left = await engine.list(labels.directory))
        for (const { Id } of left.toReversed()) await engine.remove(Id).catch(() => {}); // one whose network others are in goes later
      await kill();
      await mounts.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function writeConfiguration(folder: string, insecureRegistry: string | undefined): Promise<void> {
  const network = join(folder, 'network');
  await mkdir(network, { recursive: true });
  const id = createHash('sha256').update(folder).digest('hex');
  await writeFile(
    join(folder, 'containers.conf'),
    `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=1024:1024"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
[network]
network_backend = "netavark"
network_config_dir = "${network}"
`,
  );
  await writeFile(
    join(folder, 'registries.conf'),
    `unqualified-search-registries = []
${insecureRegistry === undefined ? '' : `[[registry]]\nlocation = "${insecureRegistry}"\ninsecure = true\n`}`,
  );
  await writeNetwork(network, 'podman', id);
}

/** Each has its own bridge and addresses. */
async function writeNetwork(directory: string, name: string, id: string): Promise<string> {
  const subnet = `10.${200 + (Number.parseInt(id.slice(0, 4), 16) % 50)}.${Number.parseInt(id.slice(4, 6), 16)}`;
  await writeFile(
    join(directory, `${name}.json`),
    JSON.stringify({
      name,
      id,
      driver: 'bridge',
      network_interface: `berth${id.slice(0, 8)}`,
      created: '2026-01-01T00:00:00Z',
      subnets: [{ subnet: `${subnet}.0/24`, gateway: `${subnet}.1` }],
      ipv6_enabled: false,
      internal: false,
      dns_enabled: false,
      ipam_options: { driver: 'host-local' },
    }),
  );
  return subnet;
}

/** As `docker save` writes them: one layer for all. */
async function archiveOf(images: readonly TestImage[]): Promise<Buffer> {
  const programs = [
    'sh',
    'sleep',
    'cat',
    'echo',
    'httpd',
    'yes',
    'head',
    'tail',
    'test',
    'wget',
    'true',
    'mkdir',
    'nc',
    'env',
    'dd',
  ];
  const layer = tarOf([
    { path: 'bin/', directory: true },
    { path: 'tmp/', directory: true },
    { path: 'www/', directory: true },
    { path: 'bin/busybox', data: await readFile(busybox), executable: true },
    ...programs.map((name) => ({ path: `bin/${name}`, linkTo: 'busybox' })),
  ]);
  const configurations = images.map(({ script, healthCheck }) =>
    Buffer.from(
      JSON.stringify({
        architecture: 'amd64',
        os: 'linux',
        config: {
          Entrypoint: ['/bin/sh', '-c'],
          Cmd: [script],
          Env: ['PATH=/bin'],
          ...(healthCheck === undefined
            ? {}
            : { Healthcheck: { Test: ['CMD-SHELL', healthCheck], Interval: 1e9, Timeout: 5e9, Retries: 3 } }),
        },
        rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
        history: [{ created: '2026-01-01T00:00:00Z', created_by: script.slice(0, 40) }],
      }),
    ),
  );
  const manifest = images.map(({ name }, i) => ({
    Config: `${sha256(configurations[i] ?? Buffer.alloc(0))}.json`,
    RepoTags: [`localhost/${name}:1`],
    Layers: ['layer.tar'],
  }));
  return tarOf([
    { path: 'layer.tar', data: layer },
    ...configurations.map((data) => ({ path: `${sha256(data)}.json`, data })),
    { path: 'manifest.json', data: Buffer.from(JSON.stringify(manifest)) },
  ]);
}

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

function load(socketPath: string, archive: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        socketPath,
        method: 'POST',
        path: '/images/load',
        headers: { host: 'podman', 'content-type': 'application/x-tar' },
      },
      (answer) => {
        let said = '';
        answer.on('data', (bytes: Buffer) => (said += bytes.toString()));
        answer.on('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(said))));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(archive);
  });
}
