import { describe, expect, it } from 'vitest';
import { type DomainMachine, domainXml, readLiveDomain, readMark } from './domain-xml.ts';
import { elementsAt, readXml, writeXml, type XmlElement, XmlError } from '../wire/xml.ts';

const machine: DomainMachine = {
  instanceId: 'inst_00000000000000000000000001',
  incarnation: 3,
  uuid: '6f2c1a52-7b1e-8c3d-9e4f-0a1b2c3d4e5f',
  cpus: 2,
  memoryMiB: 512,
  seeded: true,
  image: { path: '/var/lib/berth/agent/images/debian.qcow2', format: 'qcow2' },
  directory: '/srv/a & b/inst_00000000000000000000000001',
};
const host = { accelerator: 'tcg', network: 'default' } as const;
const made = (change: Partial<DomainMachine> = {}) => readXml(domainXml({ ...machine, ...change }, host));
const written = (domain: XmlElement, ...path: readonly string[]): string[] => elementsAt(domain, ...path).map(writeXml);

describe('a domain', () => {
  it.each([
    ['its name is of the instance', ['name'], ['<name>berth-inst_00000000000000000000000001</name>']],
    ['its uuid is of this life of the instance', ['uuid'], [`<uuid>${machine.uuid}</uuid>`]],
    [
      'its mark names instance, incarnation and where its files are',
      ['metadata', 'berth:instance'],
      [
        `<berth:instance xmlns:berth='urn:berth:instance:1' id='${machine.instanceId}' incarnation='3' directory='/srv/a &amp; b/${machine.instanceId}'/>`,
      ],
    ],
    ['it has as much memory as asked for', ['memory'], [`<memory unit='MiB'>512</memory>`]],
    ['it has as many CPUs as asked for', ['vcpu'], [`<vcpu placement='static'>2</vcpu>`]],
    ['it is a PC', ['os', 'type'], [`<type arch='x86_64' machine='pc'>hvm</type>`]],
    ['it is gone when it powers itself off', ['on_poweroff'], ['<on_poweroff>destroy</on_poweroff>']],
    [
      'it stays when it panics, so that an agent that was away learns of it',
      ['on_crash'],
      ['<on_crash>preserve</on_crash>'],
    ],
    ['it tells of its panic', ['devices', 'panic'], [`<panic model='isa'/>`]],
    [
      'its console is a socket, and a file that grows',
      ['devices', 'serial'],
      [
        `<serial type='unix'><source mode='bind' path='/srv/a &amp; b/${machine.instanceId}/console.sock'/><log file='/srv/a &amp; b/${machine.instanceId}/console.log' append='on'/><target type='isa-serial' port='0'/></serial>`,
      ],
    ],
    [
      'its screen is a socket whose place libvirt chooses',
      ['devices', 'graphics'],
      [`<graphics type='vnc'><listen type='socket'/></graphics>`],
    ],
    [
      'its guest agent has a channel',
      ['devices', 'channel'],
      [`<channel type='unix'><source mode='bind'/><target type='virtio' name='org.qemu.guest_agent.0'/></channel>`],
    ],
    [
      'it has a source of randomness',
      ['devices', 'rng', 'backend'],
      [`<backend model='random'>/dev/urandom</backend>`],
    ],
  ])('%s', (_, path, lines) => {
    expect(written(made(), ...path)).toEqual(lines);
  });

  it('has its image’s chain written out with every format, so that nothing is believed of what a guest wrote', () => {
    const [disk, seed, ...more] = written(made(), 'devices', 'disk');
    expect(more).toEqual([]);
    expect(disk).toBe(
      [
        `<disk type='file' device='disk'><driver name='qemu' type='qcow2' discard='unmap'/>`,
        `<source file='/srv/a &amp; b/${machine.instanceId}/disk.qcow2'/>`,
        `<backingStore type='file'><format type='qcow2'/><source file='${machine.image.path}'><seclabel model='dac' relabel='no'/></source><backingStore/></backingStore>`,
        `<target dev='vda' bus='virtio'/><boot order='1'/></disk>`,
      ].join(''),
    );
    expect(seed).toBe(
      [
        `<disk type='file' device='cdrom'><driver name='qemu' type='raw'/>`,
        `<source file='/srv/a &amp; b/${machine.instanceId}/seed.iso'/><target dev='hdc' bus='ide'/><readonly/></disk>`,
      ].join(''),
    );
    expect(written(made({ seeded: false }), 'devices', 'disk')).toEqual([disk]);
    expect(
      written(made({ image: { path: '/a', format: 'raw' } }), 'devices', 'disk', 'backingStore', 'format'),
    ).toEqual([`<format type='raw'/>`]);
  });

  it('with a program it has a disk with it, read-only, and two ports for the runner', () => {
    const domain = made({ runDisk: true });
    const folder = `/srv/a &amp; b/${machine.instanceId}`;
    expect(written(domain, 'devices', 'disk').slice(2)).toEqual([
      [
        `<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='${folder}/run.img'/><backingStore/>`,
        `<target dev='vdz' bus='virtio'/><readonly/><serial>berth-run</serial></disk>`,
      ].join(''),
    ]);
    expect(written(domain, 'devices', 'serial').slice(1)).toEqual([
      `<serial type='unix'><source mode='bind' path='${folder}/run-tty.sock'/><target type='isa-serial' port='1'/></serial>`,
    ]);
    expect(written(domain, 'devices', 'channel').slice(1)).toEqual([
      `<channel type='unix'><source mode='bind' path='${folder}/run.sock'/><target type='virtio' name='berth.run.0'/></channel>`,
    ]);
  });

  it.each([
    ['tcg', 'qemu', 'maximum'],
    ['kvm', 'kvm', 'host-passthrough'],
  ] as const)('under %s it is of type %s, with the CPU %s', (accelerator, type, mode) => {
    const domain = readXml(domainXml(machine, { ...host, accelerator }));
    expect(domain.attributes['type']).toBe(type);
    expect(written(domain, 'cpu')).toEqual([`<cpu mode='${mode}'/>`]);
  });

  it.each([
    ['default', `<interface type='network'><mac address='52:54:00:3d:4e:5f'/><source network='default'/>`],
    ['user', `<interface type='user'><mac address='52:54:00:3d:4e:5f'/>`],
  ])('on the network %s it has a card with its own address', (network, words) => {
    const cards = written(readXml(domainXml(machine, { ...host, network })), 'devices', 'interface');
    expect(cards).toEqual([`${words}<model type='virtio'/><rom bar='off'/></interface>`]);
  });

  it('with a place in the host’s network it has the card and the tap that are made for it, and libvirt makes none', () => {
    const network = {
      kind: 'nat',
      tap: 'bt0123456789ab',
      macAddress: '02:00:00:00:00:01',
      address: '10.77.0.5',
    } as const;
    expect(written(made({ network }), 'devices', 'interface')).toEqual([
      `<interface type='ethernet'><mac address='02:00:00:00:00:01'/><target dev='bt0123456789ab' managed='no'/><model type='virtio'/><rom bar='off'/></interface>`,
    ]);
  });

  it('is refused when its directory cannot be written in XML', () => {
    expect(() => made({ directory: '/srv/a\nb' })).toThrow(XmlError);
  });
});

describe('the mark', () => {
  const domain = (metadata: string): string => `<domain><name>a</name><metadata>${metadata}</metadata></domain>`;
  const mark = `<berth:instance xmlns:berth="urn:berth:instance:1" id="a" incarnation="1" directory="/b"/>`;

  it('is read back as it was written', () => {
    const { instanceId, incarnation, directory } = machine;
    expect(readMark(domainXml(machine, host))).toEqual({ instanceId, incarnation, directory });
  });

  it('is found beside the metadata of others', () => {
    expect(readMark(domain(`<x:y xmlns:x="urn:x">1</x:y>${mark}`))).toEqual({
      instanceId: 'a',
      incarnation: 1,
      directory: '/b',
    });
  });

  it.each([
    ['there is none', domain('')],
    ['there is no metadata', '<domain/>'],
    ['there are two', domain(mark + mark)],
    ['it is in the namespace of another', domain(mark.replace('instance:1', 'instance:2'))],
    ['its namespace is not said', domain(mark.replace(/ xmlns:berth="[^"]*"/, ''))],
    ['it names no instance', domain(mark.replace(' id="a"', ''))],
    ['it names no directory', domain(mark.replace(' directory="/b"', ''))],
    ['its incarnation is no number', domain(mark.replace('"1"', '"1e3"'))],
    ['it stands elsewhere', `<domain><devices>${mark}</devices></domain>`],
    ['the XML cannot be read', domain(`<![CDATA[x]]>${mark}`)],
  ])('is not that of Berth when %s', (_, xml) => {
    expect(readMark(xml)).toBeUndefined();
  });
});

describe('of a domain that runs', () => {
  const live = (state: string) => `<domain type='qemu' id='1'><devices>
<channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>
<channel type='unix'><source mode='bind' path='/run/agent.0'/><target type='virtio' name='org.qemu.guest_agent.0' state='${state}'/></channel>
<graphics type='vnc' socket='/run/vnc.sock'><listen type='socket' socket='/run/vnc.sock'/></graphics></devices></domain>`;

  it.each(['connected', 'disconnected'])('sockets are found, and whether its agent is %s', (state) => {
    expect(readLiveDomain(live(state))).toEqual({
      vncSocket: '/run/vnc.sock',
      guestAgentSocket: '/run/agent.0',
      guestAgentConnected: state === 'connected',
    });
  });

  it('nothing is found when it does not run after all', () => {
    expect(readLiveDomain(domainXml(machine, host))).toEqual({ guestAgentConnected: false });
  });
});
