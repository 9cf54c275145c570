// Follows docs/resize.md: a server, an agent and QEMU as processes. The guest says what it has at each boot, and keeps a mark on its disk.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runBerth } from './processes.ts';
import { tinyFleet } from './tiny-fleet.ts';

const script = `#!/bin/sh
echo "has $(nproc) CPUs, $(head -n 1 /proc/meminfo), $(cat /sys/block/vda/size) sectors, $(dd if=/dev/vda bs=1M skip=512 count=1 2>/dev/null | head -c 4)"
printf kept | dd of=/dev/vda bs=1M seek=512 conv=notrunc 2>/dev/null
sync
`;
const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

const at = tinyFleet();

async function told(): Promise<string[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of at.fleet.client.log('web')) pieces.push(piece);
  return (
    Buffer.concat(pieces)
      .toString()
      .match(/has .* sectors.*/g) ?? []
  );
}

it('goes as the document says, with the data of the guest', async () => {
  const spec = { image: 'tiny', cpus: 1, memoryMiB: 128, diskGiB: 1, stopGraceMs: 3_000, userData: script };
  await at.fleet.client.create('instance', { metadata: { name: 'web' }, spec });
  const before = await at.fleet.ready('web');
  const document = await readFile(join(import.meta.dirname, '../docs/resize.md'), 'utf8');
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(document) ?? [];
  let hash = '';
  for (const command of block.split(/^\$ berth /m).slice(1)) {
    const [words = '', ...lines] = command.trimEnd().split('\n');
    const { stdout } = await runBerth(words.replace('HASH', hash).split(' '), at.fleet.environment);
    expect(stdout.trimEnd()).toMatch(new RegExp(`^${lines.join('\n').split('...').map(escaped).join('[^]*')}$`));
    hash = /--apply (\w+)/.exec(stdout)?.[1] ?? hash;
  }
  const after = await at.fleet.until('web', ({ status }) => status.guest?.ready === true);
  expect(after.status).toMatchObject({ incarnation: before.status.incarnation, resize: { order: 1, pending: false } });
  expect(after.status.assigned).toEqual({ VCPU: 2, MEMORY_MB: 192, DISK_GB: 2 });
  const [first = '', second = ''] = await told();
  expect(first).toMatch(/has 1 CPUs, .* 2097152 sectors, $/);
  expect(second).toMatch(/has 2 CPUs, .* 4194304 sectors, kept$/);
  const memoryKiB = (line: string): number => Number(/MemTotal: +(\d+) kB/.exec(line)?.[1]);
  expect(memoryKiB(second)).toBeGreaterThan(memoryKiB(first) + 50_000);
});
