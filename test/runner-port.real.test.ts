// The disk with a program and the runner's port as guests see them: real QEMU, by hand and by libvirt, and the tiny image's Linux.

import { readFile } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { untilGuest } from '../src/agent/drivers/conformance.ts';
import { whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { testSpec } from '../src/agent/drivers/qemu/test-host.ts';
import { tinyGuests } from './tiny-guests.ts';

const never = new AbortController().signal;
const instanceId = `inst_${'0'.repeat(25)}1`;

/** Writes the first line of the disk to the port, then says back what it reads there. A read ends at once while no host is connected. */
const script = `#!/bin/sh
for disk in /sys/block/vd*; do
  [ "$(cat $disk/serial)" = berth-run ] && device=/dev/$(basename $disk) && mode=$(cat $disk/ro)
done
for port in /sys/class/virtio-ports/*; do
  [ "$(cat $port/name)" = berth.run.0 ] && port=/dev/$(basename $port) && break
done
missing=
for program in setsid tar dd mkfifo timeout stty; do which $program >/dev/null || missing="$missing $program"; done
setsid sh -c '
  exec 3<>$0
  head -n 1 $1 >&3
  echo "read-only: $2; missing:$3" >&3
  while :; do
    if read -r line <&3; then echo "got $line" >&3; else sleep 0.1; fi
  done
' $port $device $mode "$missing" </dev/null >/dev/null 2>&1 &
`;

describe('guests of QEMU', () => {
  talkOverTheirPort('QEMU');
});
const why = whyNoLibvirt();
describe.skipIf(why !== undefined)(`guests of libvirt${why ? ` (${why})` : ''}`, () => {
  talkOverTheirPort('libvirt');
});

function talkOverTheirPort(kind: 'QEMU' | 'libvirt'): void {
  const at = tinyGuests(kind);
  const openRunner = () => at.driver.access?.openRunner?.(instanceId) ?? expect.unreachable();

  it('read their program and talk in both directions, also after the host went away', async () => {
    const runDisk = (await at.host.makeRunDisk?.()) ?? expect.unreachable();
    const before = await readFile(runDisk);
    await at.driver.create(
      testSpec({ instanceId, imageName: 'tiny', memoryMiB: 128, userData: script, runDisk }),
      never,
    );
    // The program waits for the host, and the boot does not wait for the program.
    await untilGuest(at.driver, instanceId, (seen) => seen?.ready === true);
    const first = await openRunner();
    expect(await textUpTo(first, 'missing:\n')).toBe('the first line\nread-only: 1; missing:\n');
    first.write('one\n');
    expect(await textUpTo(first, 'got one\n')).toBe('got one\n');
    first.destroy();
    const second = await openRunner();
    second.write('two\n');
    expect(await textUpTo(second, 'got two\n')).toContain('got two\n');
    second.destroy();
    expect(await readFile(runDisk)).toEqual(before);
  });

  it('talk over the second serial port where they have no driver for the first', async () => {
    await at.driver.close();
    at.driver = at.host.open(at.users);
    await at.driver.recover();
    const runDisk = (await at.host.makeRunDisk?.()) ?? expect.unreachable();
    await at.driver.create(testSpec({ instanceId, imageName: 'answering', runDisk }), never);
    await untilGuest(at.driver, instanceId, (seen) => seen?.ready === true);
    for (const words of ['one\n', 'two\n']) {
      const port = await openRunner();
      port.write(words);
      expect(await textUpTo(port, words)).toBe(words);
      port.destroy();
    }
  });
}

/** The text that comes until it ends with `end`. */
async function textUpTo(port: Duplex, end: string): Promise<string> {
  let text = '';
  for await (const data of port.iterator({ destroyOnReturn: false })) {
    text += String(data);
    if (text.endsWith(end)) return text;
  }
  throw new Error(`the port was closed after ${JSON.stringify(text)}`);
}
