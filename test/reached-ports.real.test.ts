// Whether a guest itself accepts connections, which the user-mode network of QEMU accepts in its place: with a real guest of each driver.

import { describe, expect, it } from 'vitest';
import { untilGuest } from '../src/agent/drivers/conformance.ts';
import { whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { testSpec } from '../src/agent/drivers/qemu/test-host.ts';
import { tinyGuests } from './tiny-guests.ts';

const never = new AbortController().signal;
const instanceId = `inst_${'r'.repeat(26)}`;

describe('guests of QEMU', () => {
  areReached('QEMU');
});
const why = whyNoLibvirt();
describe.skipIf(why !== undefined)(`guests of libvirt${why ? ` (${why})` : ''}`, () => {
  areReached('libvirt');
});

function areReached(kind: 'QEMU' | 'libvirt'): void {
  const at = tinyGuests(kind);
  const reach = (port: number, signal: AbortSignal): Promise<string> =>
    (at.driver.access?.reach?.(instanceId, port, signal) ?? Promise.reject(new Error('no way'))).then(
      () => 'reached',
      (error: unknown) => String(error),
    );

  it('at ports where they listen, published or not, and at no others', async () => {
    const ports = [80, 81].map((guestPort) => ({ guestPort, hostPort: 0, protocol: 'tcp' }) as const);
    await at.driver.create(testSpec({ instanceId, imageName: 'tiny', memoryMiB: 128, ports }), never);
    // It has no network yet: connections are neither answered nor refused.
    const early = new AbortController();
    const tooEarly = reach(80, early.signal);
    early.abort();
    expect(await tooEarly).toContain('port 80 of the guest accepts no connection');
    await untilGuest(at.driver, instanceId, (seen) => seen?.ready === true);
    expect(await reach(80, never)).toBe('reached');
    expect(await reach(81, never)).toContain('port 81 of the guest accepts no connection');
    expect(await reach(82, never)).toContain('port 82 of the guest accepts no connection');
    await at.driver.stop(instanceId, 0);
    expect(await reach(80, never)).toMatch(/not running|does not run|NotPossible/);
  });
}
