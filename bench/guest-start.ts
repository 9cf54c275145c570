// From an instance's place to the return of its driver's start, its image being cached, beyond what the engine itself needs: the same guest
// started by QEMU, libvirt or podman with nothing of Berth around it, in the same run.

import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { qemuArguments } from '../src/agent/drivers/qemu/command-line.ts';
import { launchRun } from '../src/agent/drivers/qemu/run.ts';
import { startPodman } from '../src/agent/drivers/container/test-podman.ts';
import { domainXml } from '../src/agent/drivers/libvirt/domain/domain-xml.ts';
import { openLibvirt } from '../src/agent/drivers/libvirt/open-libvirt.ts';
import { startLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { guestFiles, guestUuid } from '../src/agent/drivers/guest-life/guest-files.ts';
import type { GuestRecord } from '../src/agent/drivers/guest-life/guest-record.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemClock, systemPrng } from '../src/base/system.ts';
import { startFleet } from '../test/processes.ts';
import { tinyImage } from '../test/tiny-image.ts';
import { type Emit, median } from './row.ts';
import { program } from './server-process.ts';

const rounds = 7;

/** Starts the guest number `i` and ends it again; resolves to the milliseconds that the start took. */
type Bare = (i: number) => Promise<number>;

export async function measureStarts(directory: string, emit: Emit): Promise<void> {
  await measure(directory, emit, { driver: 'qemu', agent: {}, bare: await bareQemu(join(directory, 'bare-qemu')) });
  const daemon = await startLibvirt();
  try {
    await measure(directory, emit, {
      driver: 'libvirt',
      agent: { libvirtUri: `qemu:///system?socket=${daemon.path}`, libvirtNetwork: 'user' },
      bare: await bareLibvirt(join(directory, 'bl'), daemon.path),
    });
  } finally {
    await daemon.stop();
  }
  const podman = await startPodman();
  try {
    await podman.load([{ name: 'idle', script: 'exec sleep 1000' }]);
    await measure(directory, emit, {
      driver: 'container',
      agent: { containerEngine: `unix://${podman.socketPath}` },
      bare: async (i) => {
        const name = `bare-${i}`;
        const startedAt = performance.now();
        const id = await podman.engine.create(name, { Image: 'localhost/idle:1' });
        await podman.engine.start(id);
        const took = performance.now() - startedAt;
        await podman.engine.remove(id);
        return took;
      },
    });
  } finally {
    await podman.stop();
  }
}

interface Measured {
  readonly driver: 'qemu' | 'libvirt' | 'container';
  readonly agent: Readonly<Record<string, unknown>>;
  readonly bare: Bare;
}

async function measure(directory: string, emit: Emit, { driver, agent, bare }: Measured): Promise<void> {
  const fleet = await startFleet(join(directory, driver), { drivers: [driver], agent, program });
  const times: number[] = [];
  const limits: number[] = [];
  try {
    const spec =
      driver === 'container'
        ? { source: 'docker://localhost/idle:1', format: 'container' as const }
        : (await tinyImage()).spec;
    await fleet.client.create('image', { metadata: { name: 'bench' }, spec });
    for (let i = 0; i < rounds; i++) {
      const name = `guest-${i}`;
      await fleet.client.create('instance', {
        metadata: { name },
        spec: { image: 'bench', cpus: 1, memoryMiB: 128, stopGraceMs: 0 },
      });
      const { status } = await fleet.until(
        name,
        (instance) => instance.status.guest?.state !== 'preparing' && instance.status.guest !== undefined,
      );
      const start = status.guest?.phases.find((phase) => phase.name === 'start');
      if (start === undefined || status.scheduledAtMs === undefined) throw new Error(JSON.stringify(status));
      times.push(start.startedAtMs + start.durationMs - status.scheduledAtMs);
      await fleet.client.delete('instance', name);
      await fleet.gone(name);
      limits.push(await bare(i));
    }
  } finally {
    await fleet.stop();
  }
  const limit = median(limits.slice(1));
  const whole = median(times.slice(1)); // the first one fills the image cache
  process.stderr.write(`  ${driver}: ${whole.toFixed(0)} ms in all, ${limit.toFixed(0)} ms of the engine alone\n`);
  emit({
    suite: 'guests',
    name: `start_p50_ms_${driver}`,
    value: whole - limit,
    unit: 'ms',
    better: 'lower',
    goal: 300,
    limit,
    ratio: whole / limit,
  });
}

async function bareMachine(directory: string, i: number) {
  const tiny = await tinyImage();
  const instanceId = `inst_${String(i).padStart(26, '0')}`;
  const folder = join(directory, instanceId);
  await mkdir(folder, { recursive: true });
  execFileSync('qemu-img', [
    'create',
    '-q',
    '-f',
    'qcow2',
    '-F',
    'qcow2',
    '-b',
    tiny.path,
    join(folder, guestFiles.disk),
  ]);
  return {
    instanceId,
    incarnation: 1,
    uuid: guestUuid(instanceId, 1),
    cpus: 1,
    memoryMiB: 128,
    seeded: false,
    ports: [],
    directory: folder,
    image: { path: tiny.path, format: 'qcow2' },
  } as const satisfies Partial<GuestRecord> & { directory: string };
}

async function bareQemu(directory: string): Promise<Bare> {
  return async (i) => {
    const machine = await bareMachine(directory, i);
    const parts = {
      directory: machine.directory,
      uuid: machine.uuid,
      clock: systemClock,
      prng: systemPrng(),
      log: silentLogger,
      publishedPorts: [],
    };
    const startedAt = performance.now();
    const run = await launchRun(parts, {
      program: 'qemu-system-x86_64',
      arguments: qemuArguments(machine, { accelerator: 'tcg', bindAddress: '127.0.0.1' }),
      onProcess: async () => {},
    });
    await run.connected;
    const took = performance.now() - startedAt;
    await run.end();
    return took;
  };
}

async function bareLibvirt(directory: string, path: string): Promise<Bare> {
  return async (i) => {
    const machine = await bareMachine(directory, i);
    const libvirt = await openLibvirt({ path, uri: 'qemu:///system', clock: systemClock });
    const startedAt = performance.now();
    const domain = await libvirt.define(domainXml(machine, { accelerator: 'tcg', network: 'user' }));
    await libvirt.start(domain);
    const took = performance.now() - startedAt;
    await libvirt.destroy(domain);
    await libvirt.undefine(domain);
    libvirt.close();
    return took;
  };
}
