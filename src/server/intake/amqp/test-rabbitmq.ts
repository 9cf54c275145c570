// A RabbitMQ broker for a test: in a temporary directory, on a free port of loopback. It never outlives the process that
// started it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePorts } from '../../../base/test-ports.ts';

export interface TestRabbitmq {
  readonly url: string;
  readonly port: number;
  /** Of TLS; 0 without it. */
  readonly tlsPort: number;
  start(): Promise<void>;
  /** As if it were killed; what it has stored stays. */
  kill(): Promise<void>;
  /** Runs `rabbitmqctl`. */
  control(...words: string[]): Promise<void>;
  dispose(): Promise<void>;
}

const server = '/usr/lib/rabbitmq/bin/rabbitmq-server';

/** `tls`: PEM files of a certificate for 127.0.0.1, of its key, and of the authority of clients, who need a certificate then. */
export async function startRabbitmq(tls?: {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}): Promise<TestRabbitmq> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-rabbitmq-'));
  const [port = 0, epmdPort = 0, distributionPort = 0, tlsPort = 0] = await freePorts(tls ? 4 : 3);
  const settings = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    'loopback_users = none',
    'disk_free_limit.absolute = 50MB',
    'vm_memory_high_watermark.absolute = 512MB',
    'log.console = true',
    'log.file = false',
    ...(tls
      ? [
          `listeners.ssl.1 = 127.0.0.1:${tlsPort}`,
          `ssl_options.certfile = ${tls.cert}`,
          `ssl_options.keyfile = ${tls.key}`,
          `ssl_options.cacertfile = ${tls.ca}`,
          'ssl_options.verify = verify_peer',
          'ssl_options.fail_if_no_peer_cert = true',
        ]
      : []),
  ];
  writeFileSync(join(folder, 'rabbitmq.conf'), `${settings.join('\n')}\n`);
  writeFileSync(join(folder, 'enabled_plugins'), '[].\n');
  // The broker refuses to run as root; Debian's package creates the user.
  const asUser = process.getuid?.() === 0 ? ['--reuid=rabbitmq', '--regid=rabbitmq', '--init-groups'] : [];
  if (asUser.length > 0) giveTo('rabbitmq', folder);
  const environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    RABBITMQ_NODENAME: `t${port}@localhost`,
    RABBITMQ_DIST_PORT: `${distributionPort}`,
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 1:1 +sbwt none',
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_EPMD_PORT: `${epmdPort}`,
    RUNNING_UNDER_SYSTEMD: 'true', // then its script becomes the broker, which so dies with us
  };
  const epmd = spawn('setpriv', ['--pdeathsig=KILL', 'epmd', '-address', '127.0.0.1', '-port', `${epmdPort}`], {
    stdio: 'ignore',
  });
  await listening(epmdPort);
  const run = (program: string, words: readonly string[] = []): ChildProcess =>
    spawn('setpriv', [...asUser, '--pdeathsig=KILL', program, ...words], {
      env: environment,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  let broker: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    broker = run(server);
    broker.stderr?.resume();
    let log = '';
    if (!broker.stdout) throw new Error('RabbitMQ has no output');
    for await (const line of createInterface({ input: broker.stdout })) {
      log += `${line}\n`;
      if (line.includes('Server startup complete')) break;
    }
    if (!log.includes('Server startup complete')) throw new Error(`RabbitMQ did not start:\n${log}`);
    broker.stdout.resume();
  };
  const kill = async (): Promise<void> => {
    const child = broker;
    broker = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  await start();
  return {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    port,
    tlsPort,
    start,
    kill,
    async control(...words) {
      const child = run('/usr/lib/rabbitmq/bin/rabbitmqctl', ['--node', environment.RABBITMQ_NODENAME, ...words]);
      let output = '';
      child.stdout?.on('data', (text: Buffer) => (output += text.toString()));
      child.stderr?.on('data', (text: Buffer) => (output += text.toString()));
      const [code]: unknown[] = await once(child, 'exit');
      if (code !== 0) throw new Error(`rabbitmqctl ${words.join(' ')}: ${output}`);
    },
    async dispose() {
      await kill();
      epmd.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const socket = connect({ host: '127.0.0.1', port });
    const reached = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (reached) return;
    await new Promise((resolve) => setTimeout(resolve, 20)); // epmd says nothing when it listens
  }
  throw new Error(`nothing listens on port ${port}`);
}

function giveTo(user: string, path: string): void {
  const [, , uid, gid] =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((line) => line.startsWith(`${user}:`))
      ?.split(':') ?? [];
  chownSync(path, Number(uid), Number(gid));
  chmodSync(path, 0o755);
}
