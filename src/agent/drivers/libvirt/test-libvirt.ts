// A private libvirtd for tests: the real one, in mount and process namespaces of its own, with its state in memory. It ends with the
// test, its guests too. KVM is hidden from it: its probe of a KVM that hangs could not even be killed.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../base/clock.ts';
import { systemClock } from '../../../base/system.ts';
import { openLibvirt } from './open-libvirt.ts';

/** A network for the guests of a test, as `virsh net-define` takes it. */
export const testNetwork = {
  name: 'guests',
  bridge: 'berth-guests',
  xml: `<network><name>guests</name><bridge name='berth-guests'/><forward mode='nat'/>
<ip address='192.168.200.1' netmask='255.255.255.0'><dhcp><range start='192.168.200.2' end='192.168.200.254'/></dhcp></ip>
</network>`,
};

export interface TestLibvirt {
  /** Of its socket. */
  readonly path: string;
  /** Where it keeps what its QEMU domains say. */
  readonly logDirectory: string;
  /** Of its files: prefix for a path as it sees it. */
  rootDirectory(): Promise<string>;
  /** Ends the daemon, not its guests, and starts it again after `meanwhile`. */
  restart(meanwhile?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Why there can be none here; undefined: there can. */
export function whyNoLibvirt(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may start a libvirtd of its own';
  if (!existsSync('/usr/sbin/libvirtd')) return 'libvirt is not installed (package libvirt-daemon-system)';
  // In a chroot mounts cannot be kept apart, for its root is no mount point.
  return spawnSync('unshare', ['--mount', '--pid', '--fork', 'mount', '--make-rprivate', '/']).status === 0
    ? undefined
    : 'mount namespaces do not work here';
}

/** Why it can have no network here; undefined: it can. */
export function whyNoNetwork(): string | undefined {
  const missing = ['dnsmasq', 'iptables', 'ip'].find((name) => spawnSync(name, ['--version']).error !== undefined);
  if (missing !== undefined) return `${missing} is not installed (packages dnsmasq-base, iptables, iproute2)`;
  return spawnSync('unshare', ['--net', 'true']).status === 0 ? undefined : 'there are no network namespaces here';
}

/** Its first process takes in the guests that lose their parent: a daemon as first process would leave them as zombies and wait for them. */
const script = `set -e
mount --make-rprivate /
if [ -e /dev/kvm ]; then
  # Read-only, so that it counts as unusable: else libvirt takes seconds to probe it with QEMU, for every domain.
  touch "$1/no-kvm"
  mount --bind "$1/no-kvm" /dev/kvm
  mount -o remount,bind,ro /dev/kvm
fi
mkdir -p "$1/log" /var/log/libvirt
mount --bind "$1/log" /var/log/libvirt
for folder in /run/libvirt /var/lib/libvirt /var/cache/libvirt /etc/libvirt; do
  mkdir -p $folder
  mount -t tmpfs tmpfs $folder
done
cat > /etc/libvirt/libvirtd.conf <<END
unix_sock_dir = "$1"
auth_unix_rw = "none"
END
cat > /etc/libvirt/qemu.conf <<END
security_driver = "none"
cgroup_controllers = []
namespaces = []
END
if [ -e "$1/as-installed" ]; then
  echo 'max_size = 0' > /etc/libvirt/virtlogd.conf
  virtlogd -f /etc/libvirt/virtlogd.conf -p /run/libvirt/virtlogd.pid &
else
  printf '%s\\n' 'stdio_handler = "file"' 'user = "root"' 'group = "root"' >> /etc/libvirt/qemu.conf
fi
if [ -e "$1/networks" ]; then
  mkdir /etc/libvirt/qemu
  cp -r "$1/networks" /etc/libvirt/qemu
  ip link set lo up
fi
# Of the network namespace that it is in, which may be another than that of who mounted /sys.
mount -t sysfs sysfs /sys || true
set +e
while true; do
  libvirtd -f /etc/libvirt/libvirtd.conf -p /run/libvirt/libvirtd.pid &
  wait $!
  sleep 0.1
  while [ -e "$1/away" ]; do sleep 0.02; done
done
`;

export interface TestLibvirtOptions {
  /** The path of a network namespace, for it and its guests. Default: that of the test. */
  readonly networkNamespace?: string;
  /** It knows one, in a network namespace of its own. */
  readonly network?: { readonly name: string; readonly xml: string };
  /** QEMU runs as libvirt's own user, and consoles are written by its log daemon: as Debian has it. Default: neither. */
  readonly asInstalled?: boolean;
}

export async function startLibvirt({
  network,
  networkNamespace,
  asInstalled = false,
}: TestLibvirtOptions = {}): Promise<TestLibvirt> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-libvirt-'));
  await writeFile(join(folder, 'start.sh'), script);
  // Dies with the test, however that ends, and takes with it all that is in its process namespace.
  const words = ['--pdeathsig', 'KILL', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  if (asInstalled) await writeFile(join(folder, 'as-installed'), '');
  if (network !== undefined) {
    await mkdir(join(folder, 'networks'));
    await writeFile(join(folder, 'networks', `${network.name}.xml`), network.xml);
    words.push('--net');
  }
  const called = ['setpriv', ...words, 'sh', join(folder, 'start.sh'), folder];
  const entered = networkNamespace === undefined ? called : [`--net=${networkNamespace}`, ...called];
  const namespace = spawn(networkNamespace === undefined ? 'env' : 'nsenter', entered, {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  namespace.stderr.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-4_000);
  });
  const path = join(folder, 'libvirt-sock');
  const stop = async (): Promise<void> => {
    await kill(namespace);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await answering(path, namespace);
  } catch (error) {
    await stop();
    throw new Error(`libvirtd does not start: ${said}`, { cause: error });
  }
  return {
    path,
    logDirectory: join(folder, 'log', 'qemu'),
    rootDirectory: async () => `/proc/${await pidOf(namespace, 'libvirtd')}/root`,
    async restart(meanwhile = async () => {}) {
      const held = join(folder, 'away');
      await writeFile(held, '');
      await rm(path, { force: true });
      const daemon = await pidOf(namespace, 'libvirtd');
      process.kill(daemon, 'SIGTERM');
      while (existsSync(`/proc/${daemon}`)) await sleep(systemClock, 20);
      try {
        await meanwhile();
      } finally {
        await rm(held);
      }
      await answering(path, namespace);
    },
    stop,
  };
}

/** Resolves when the daemon behind the socket answers. */
async function answering(path: string, namespace: ChildProcess): Promise<void> {
  for (;;) {
    if (namespace.exitCode !== null || namespace.signalCode !== null) throw new Error('it ended');
    try {
      const libvirt = await openLibvirt({ path, uri: 'qemu:///system', clock: systemClock });
      await libvirt.capabilities(); // it looks at its hypervisors first
      return libvirt.close();
    } catch {
      await sleep(systemClock, 50); // not yet
    }
  }
}

/** A process somewhere below one of ours. */
async function pidOf(parent: ChildProcess, name: string): Promise<number> {
  const below = async (pid: number): Promise<number | undefined> => {
    if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() === name) return pid;
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
    for (const child of children.split(' ').filter((word) => word !== '')) {
      const found = await below(Number(child));
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const found = await below(parent.pid ?? 0);
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
