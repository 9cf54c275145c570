import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, watch, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { system, systemClock } from '../../base/system.ts';
import { DeviceWatchdog } from './watchdog.ts';

let directory: string;
let device: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-watchdog-'));
  device = join(directory, 'device');
  await writeFile(device, '');
});
afterEach(async () => {
  const pid = Number(await readFile(join(directory, 'watchdog.pid'), 'utf8').catch(() => ''));
  if (pid > 0 && existsSync(`/proc/${pid}`)) system.signal(pid, 'SIGKILL');
  await rm(directory, { recursive: true });
});

const opened = () =>
  new DeviceWatchdog({ device, directory, clock: systemClock, log: silentLogger, systemPath: join(directory, 'sys') });

/** What is written to the device, once it has changed and meets the condition. */
async function written(until: (text: string) => boolean): Promise<string> {
  for await (const _ of watch(directory)) {
    const text = await readFile(device, 'utf8');
    if (until(text)) return text;
  }
  return expect.unreachable();
}

it('feeds while the lease lasts, and disarms in order when no guest is left', async () => {
  const watchdog = opened();
  let left = true;
  watchdog.watch(() => left);
  watchdog.renewed(system.bootMs() + 60_000);
  await watchdog.start();
  await written((text) => text.length >= 2);
  left = false;
  const disarmed = written((text) => text.endsWith('V'));
  await watchdog.close();
  expect(await disarmed).toMatch(/^\.+V$/);
});

it('feeds without a lease only when no guest is left', async () => {
  const watchdog = opened();
  let left = true;
  watchdog.watch(() => left);
  watchdog.renewed(system.bootMs() - 60_000);
  await watchdog.start();
  expect(await readFile(device, 'utf8')).toBe('');
  left = false;
  await written((text) => text.startsWith('.'));
  await watchdog.close();
});

it('says how long the device waits, as the kernel has it', async () => {
  expect(await opened().timeoutMs()).toBeUndefined();
  await mkdir(join(directory, 'sys', 'device'), { recursive: true });
  await writeFile(join(directory, 'sys', 'device', 'timeout'), '30\n');
  expect(await opened().timeoutMs()).toBe(30_000);
});
