import { describe, expect, it } from 'vitest';
import { guestUuid } from '../guest-life/guest-files.ts';
import { isPlainPath, markOf, zoneCommands, zoneMacAddress, zoneName } from './zone-config.ts';

const instanceId = 'inst_00000000000000000000000001';
const uuid = guestUuid(instanceId, 1);
const config = {
  zonePath: `/rpool/berth/${zoneName(instanceId)}`,
  uuid,
  cpus: 2,
  memoryMiB: 512,
  disk: `rpool/berth/disk-${instanceId}`,
  globalNic: 'igb0',
};

it('writes a zone as the brand documents it', () => {
  const tail = uuid.slice(-10);
  expect(zoneCommands({ ...config, seed: '/var/lib/berth/agent/zones/x/seed.iso' })).toBe(`create -b
set zonepath="/rpool/berth/berth-inst_00000000000000000000000001"
set brand="bhyve"
set autoboot="false"
set ip-type="exclusive"
add net
set physical="berth${tail}n0"
set global-nic="igb0"
set mac-addr="02:${tail.match(/../g)?.join(':')}"
end
add device
set match="/dev/zvol/rdsk/rpool/berth/disk-inst_00000000000000000000000001"
end
add attr
set name="berth-guest"
set type="string"
set value="${uuid}"
end
add attr
set name="uuid"
set type="string"
set value="${uuid}"
end
add attr
set name="vcpus"
set type="string"
set value="2"
end
add attr
set name="ram"
set type="string"
set value="512M"
end
add attr
set name="bootdisk"
set type="string"
set value="rpool/berth/disk-inst_00000000000000000000000001"
end
add attr
set name="console"
set type="string"
set value="socket,/tmp/vm.com1"
end
add attr
set name="rng"
set type="string"
set value="on"
end
add fs
set dir="/var/lib/berth/agent/zones/x/seed.iso"
set special="/var/lib/berth/agent/zones/x/seed.iso"
set type="lofs"
add options ro
add options nodevices
end
add attr
set name="cdrom"
set type="string"
set value="/var/lib/berth/agent/zones/x/seed.iso"
end
`);
});

it('has no CD-ROM without a seed', () => {
  expect(zoneCommands(config)).not.toMatch(/cdrom|add fs/);
});

it('keeps to the limits of names: 63 characters of a zone, 31 of a link that ends in a number', () => {
  expect(zoneName(instanceId)).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);
  expect(/physical="(.*)"/.exec(zoneCommands(config))?.[1]).toMatch(/^[a-z][a-z0-9_]{0,29}[0-9]$/);
});

it('gives each life of an instance an address of its own, locally administered and of one machine', () => {
  const addresses = [1, 2, 3].map((incarnation) => zoneMacAddress(guestUuid(instanceId, incarnation)));
  expect(new Set(addresses).size).toBe(3);
  for (const address of addresses) expect(address).toMatch(/^02(:[0-9a-f]{2}){5}$/);
});

it.each(['/a"b', '/a b', '/a\nset brand=lx', '/a;b', '/a,b:c\\'])('never writes the path %j into a command', (seed) => {
  expect(() => zoneCommands({ ...config, seed })).toThrow('cannot be');
  expect(isPlainPath(seed)).toBe(false);
});

describe('the mark of a zone', () => {
  it('is found in what zonecfg exports, in quotes or without', () => {
    const exported = zoneCommands(config);
    expect(markOf(exported)).toBe(uuid);
    expect(markOf(exported.replaceAll('"', ''))).toBe(uuid);
  });

  it.each([
    ['a zone without attributes', 'create -b\nset brand=bhyve\n'],
    [
      'the name where it is no name of an attribute',
      'create -b\nadd attr\nset name=x\nset type=string\nset value=berth-guest\nend\n',
    ],
    ['an attribute without a value', 'add attr\nset name=berth-guest\nset type=string\nend\nset value=later\n'],
  ])('is not in %s', (_what, exported) => {
    expect(markOf(exported)).toBeUndefined();
  });
});
