import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import type { Libvirt, LifecycleEvent } from './libvirt.ts';
import { openLibvirt } from './open-libvirt.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from './test-libvirt.ts';

const uuid = '6f2c1a52-7b1e-8c3d-9e4f-0a1b2c3d4e5f';
const domainXml = (name: string): string => `<domain type='qemu'><name>${name}</name><uuid>${uuid}</uuid>
<memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='pc'>hvm</type></os></domain>`;

const reason = whyNoLibvirt();

describe.skipIf(reason !== undefined)(`libvirt${reason ? ` (${reason})` : ''}`, () => {
  let daemon: TestLibvirt;
  let libvirt: Libvirt;
  let events: LifecycleEvent[];
  const open = () =>
    openLibvirt({
      path: daemon.path,
      uri: 'qemu:///system',
      clock: systemClock,
      onLifecycle: (event) => void events.push(event),
    });
  beforeAll(async () => {
    daemon = await startLibvirt();
    events = [];
    libvirt = await open();
  });
  afterAll(async () => {
    libvirt.close();
    await daemon.stop();
  });

  it('says which it is, and what it can do', async () => {
    expect(await libvirt.version()).toMatch(/^\d+\.\d+\.\d+$/);
    expect(await libvirt.hypervisorVersion()).toMatch(/^\d+\.\d+\.\d+$/);
    expect(await libvirt.capabilities()).toContain('<capabilities>');
  });

  it('takes a domain from its definition to its end, tells each step, and forgets it', async () => {
    const domain = await libvirt.define(domainXml('one'));
    expect(domain).toEqual({ name: 'one', uuid, id: -1 });
    expect(await libvirt.byName('one')).toEqual(domain);
    expect(await libvirt.byUuid(uuid)).toEqual(domain);
    expect(await libvirt.domains()).toEqual([domain]);
    expect(await libvirt.state(domain)).toMatchObject({ state: 'shutoff' });
    await libvirt.start(domain);
    await libvirt.suspend(domain);
    expect(await libvirt.state(domain)).toMatchObject({ state: 'paused' });
    await libvirt.resume(domain);
    expect(await libvirt.state(domain)).toMatchObject({ state: 'running' });
    expect(await libvirt.xml(domain)).toContain(`<uuid>${uuid}</uuid>`);
    expect(await libvirt.addresses(domain, 'lease')).toEqual([]);
    expect(await libvirt.diskErrors(domain)).toEqual([]);
    expect(await libvirt.monitor(domain, 'info name')).toBe('one\r\n');
    await libvirt.shutdown(domain); // no system is there to heed it
    await libvirt.destroy(domain);
    await libvirt.destroy(domain);
    expect(await libvirt.state(domain)).toEqual({ state: 'shutoff', reason: 2 });
    await libvirt.undefine(domain);
    await libvirt.undefine(domain);
    expect(await libvirt.byName('one')).toBeUndefined();
    const told = events.map(({ event }) => event);
    expect(told.filter((event) => ['defined', 'started', 'suspended', 'stopped', 'undefined'].includes(event))).toEqual(
      ['defined', 'started', 'suspended', 'stopped', 'undefined'],
    );
  });

  it('says why it refuses a definition', async () => {
    await expect(libvirt.define('<domain/>')).rejects.toThrow('domainDefine: missing name information');
  });

  it('knows no network that nobody defined', async () => {
    expect(await libvirt.ensureNetwork('berth')).toBeUndefined();
    expect(await libvirt.hasNetwork('berth')).toBe(false);
  });

  it('leaves a guest running when its daemon is started anew', async () => {
    const domain = await libvirt.define(domainXml('two'));
    await libvirt.start(domain);
    const { id } = (await libvirt.byName('two')) ?? expect.unreachable();
    await daemon.restart();
    expect(await libvirt.closed).toContain('closed the connection');
    libvirt = await open();
    expect(await libvirt.byName('two')).toEqual({ name: 'two', uuid, id });
    expect(await libvirt.state(domain)).toMatchObject({ state: 'running' });
    await libvirt.destroy(domain);
    await libvirt.undefine(domain);
  });
});
