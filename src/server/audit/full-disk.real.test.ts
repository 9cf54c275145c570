// A real disk without room: a small tmpfs. Changes are refused, reads and hosts go on, and it recovers by itself.

import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { system } from '../../base/system.ts';
import { startTestServer, testRegistration } from '../testing.ts';
import { linesIn, testFolder, testSettings } from './testing.ts';

const image = (name: string) => ({ metadata: { name }, spec: { source: 'file:///debian.img' } });

function smallDisk(): string {
  const disk = join(testFolder(), 'disk');
  mkdirSync(disk);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', disk]));
  return disk;
}

/** To its last byte. */
function fill(path: string): void {
  const fd = openSync(path, 'w');
  for (let size = 64 * 1024; size >= 1; ) {
    try {
      writeSync(fd, Buffer.alloc(size));
    } catch {
      size = Math.floor(size / 2);
    }
  }
  closeSync(fd);
}

it.skipIf(system.userId() !== 0)('a full disk refuses changes, not heartbeats, until there is room again', async () => {
  const directory = smallDisk();
  const server = await startTestServer({ audit: testSettings(directory, { reserveBytes: 64 * 1024 }) });
  onTestFinished(() => server.close());
  const { client } = server;
  const agent = server.agentClient('rack-1');
  const { epoch } = await agent.register(testRegistration());
  await client.create('image', image('before'));

  const ballast = join(directory, 'ballast');
  fill(ballast);
  // What is under way is logged in the room of the reserve; what comes after is refused.
  const names = Array.from({ length: 400 }, (_, i) => `full-${i}`);
  let made = 0;
  let refusal: unknown;
  for (const name of names) {
    try {
      await client.create('image', image(name));
      made += 1;
    } catch (error) {
      refusal = error;
      break;
    }
  }
  expect(refusal).toMatchObject({ code: 'AuditUnavailable', status: 503 });
  expect(made).toBeLessThan(names.length);
  for (let i = 0; i < 3; i++)
    await expect(client.delete('image', 'before')).rejects.toMatchObject({ code: 'AuditUnavailable' });
  await agent.heartbeat({ epoch });
  expect((await client.list('image')).items.map(({ metadata }) => metadata.name)).toContain('before');

  rmSync(ballast);
  await expect
    .poll(
      () =>
        client.create('image', image('after')).then(
          () => 'made',
          ({ code }: { code?: string }) => code,
        ),
      { timeout: 20_000 },
    )
    .toBe('made');
  const { items } = await client.list('image');
  const told = linesIn(directory).filter(({ verb, outcome }) => verb === 'create' && outcome === 'done');
  expect(told.map(({ object }) => object).sort()).toEqual(items.map(({ metadata }) => metadata.name).sort());
  expect(await client.checkAuditLog()).toMatchObject({ faults: [] });
});
