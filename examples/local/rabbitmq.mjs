// A RabbitMQ of its own for the example: in one directory, on a free port of loopback. It ends with this process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export async function startRabbitmq(directory) {
  await mkdir(directory, { recursive: true });
  const [port, epmdPort, distributionPort] = [await freePort(), await freePort(), await freePort()];
  const settings = [`listeners.tcp.1 = 127.0.0.1:${port}`, 'loopback_users = none', 'log.console = true'];
  await writeFile(join(directory, 'rabbitmq.conf'), `${settings.join('\n')}\n`);
  await writeFile(join(directory, 'enabled_plugins'), '[].\n');
  // It refuses to run as root; Debian's package creates the user.
  const asUser = process.getuid() === 0 ? ['--reuid=rabbitmq', '--regid=rabbitmq', '--init-groups'] : [];
  if (asUser.length > 0) await giveToRabbitmq(directory);
  const epmd = spawn('setpriv', ['--pdeathsig=KILL', 'epmd', '-address', '127.0.0.1', '-port', `${epmdPort}`], {
    stdio: 'ignore',
  });
  const broker = spawn('setpriv', [...asUser, '--pdeathsig=KILL', '/usr/lib/rabbitmq/bin/rabbitmq-server'], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      RABBITMQ_NODENAME: `example${port}@localhost`,
      RABBITMQ_DIST_PORT: `${distributionPort}`,
      RABBITMQ_CONFIG_FILE: join(directory, 'rabbitmq.conf'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, 'enabled_plugins'),
      RABBITMQ_MNESIA_BASE: join(directory, 'mnesia'),
      RABBITMQ_LOG_BASE: join(directory, 'log'),
      ERL_EPMD_ADDRESS: '127.0.0.1',
      ERL_EPMD_PORT: `${epmdPort}`,
      RUNNING_UNDER_SYSTEMD: 'true', // then its script becomes the broker, which so ends with this process
    },
  });
  let log = '';
  for await (const line of createInterface({ input: broker.stdout })) {
    log += `${line}\n`;
    if (line.includes('Server startup complete')) break;
  }
  if (!log.includes('Server startup complete')) throw new Error(`RabbitMQ did not start:\n${log}`);
  broker.stdout.resume();
  return {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    async stop() {
      const exited = once(broker, 'exit');
      broker.kill('SIGTERM');
      await exited;
      epmd.kill('SIGTERM');
    },
  };
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function giveToRabbitmq(path) {
  const passwd = await readFile('/etc/passwd', 'utf8');
  const [, , uid, gid] = passwd.split('\n').find((line) => line.startsWith('rabbitmq:'))?.split(':') ?? [];
  await chown(path, Number(uid), Number(gid));
  await chmod(path, 0o755);
}
