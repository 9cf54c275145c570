// A machine of namespaces in which podman runs the project's image: networks, processes and storage of its own, which end with it.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { pageCommands } from '../page-commands.ts';

const project = resolve(import.meta.dirname, '../..');

export class PodmanRoom {
  /** Images are in `store` below it; buildah takes it as `--root`, with `run` as `--runroot`. */
  readonly directory: string;
  readonly #environment: Readonly<Record<string, string>>;
  #holder: ChildProcess | undefined;
  #pid = '';

  /** `environment`: of what runs in the room. */
  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
    this.directory = mkdtempSync(join(tmpdir(), 'berth-images-'));
    writeFileSync(join(this.directory, 'containers.conf'), containersConf(this.directory));
    writeFileSync(join(this.directory, 'podman'), wrapper(this.directory), { mode: 0o755 });
  }

  async open(): Promise<void> {
    const unshare = ['unshare', '--net', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child', '--', 'bash'];
    const holder = spawn('setpriv', ['--pdeathsig', 'KILL', ...unshare, join(import.meta.dirname, 'set-up.sh')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#holder = holder;
    await once(holder.stdout, 'data');
    this.#pid = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  }

  async close(): Promise<void> {
    const holder = this.#holder;
    const ended = holder === undefined ? undefined : once(holder, 'exit');
    holder?.kill('SIGKILL');
    await ended;
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** What the command says. Rejects when it fails. */
  async run(...words: readonly string[]): Promise<string> {
    const inside = ['--target', this.#pid, '--net', '--mount', '--pid', '--', ...words];
    const { stdout, stderr } = await promisify(execFile)('nsenter', inside, {
      cwd: this.directory,
      env: { ...process.env, ...this.#environment },
    });
    return stdout + stderr;
  }

  podman(...words: readonly string[]): Promise<string> {
    return this.run(join(this.directory, 'podman'), ...words);
  }

  /** With a file of packaging/compose, and one that changes it for the test. */
  compose(file: string, override: string | undefined, ...words: readonly string[]): Promise<string> {
    const files = [join(project, 'packaging/compose', file), ...(override === undefined ? [] : [override])];
    return this.run(
      ...['podman-compose', '--podman-path', join(this.directory, 'podman'), '-p', 'berth'],
      ...files.flatMap((each) => ['-f', each]),
      ...words,
    );
  }

  /** `healthy`, or why it is not, for a test that polls. */
  health(container: string): Promise<string> {
    return this.podman('healthcheck', 'run', container).then(
      () => 'healthy',
      async (error: unknown) => `${String(error)}\n${await this.podman('logs', '--tail', '3', container)}`,
    );
  }

  /** As the administrator, in the container of a server. */
  logIn(container: string): Promise<string> {
    const [first = ''] = pageCommands({ page: 'compose.md', heading: 'The first command', prompt: '$' });
    return this.podman('exec', container, ...first.replace(/^.* server berth/, 'berth').split(' '));
  }
}

/** podman with storage and networks of its own. */
function wrapper(directory: string): string {
  return `#!/bin/sh
export CONTAINERS_CONF=${directory}/containers.conf
exec podman --root ${directory}/store --runroot ${directory}/run --log-level=error "$@"
`;
}

function containersConf(directory: string): string {
  return `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
[network]
network_backend = "netavark"
network_config_dir = "${directory}/networks"
`;
}
