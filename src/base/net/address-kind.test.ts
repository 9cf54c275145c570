import { describe, expect, it } from 'vitest';
import { type AddressKind, addressKind } from './address-kind.ts';

const rows: readonly (readonly [string, AddressKind])[] = [
  ['1.1.1.1', 'public'],
  ['151.101.2.132', 'public'],
  ['2606:4700::1111', 'public'],
  ['10.0.0.1', 'private'],
  ['100.64.0.1', 'private'],
  ['127.0.0.1', 'private'],
  ['127.255.255.254', 'private'],
  ['172.15.255.255', 'public'],
  ['172.16.0.1', 'private'],
  ['172.32.0.1', 'public'],
  ['192.168.1.1', 'private'],
  ['::1', 'private'],
  ['fd00::1', 'private'],
  ['fd00:ec2::254', 'forbidden'],
  ['0.0.0.0', 'forbidden'],
  ['169.254.169.254', 'forbidden'],
  ['100.100.100.200', 'forbidden'],
  ['192.0.0.192', 'forbidden'],
  ['224.0.0.1', 'forbidden'],
  ['255.255.255.255', 'forbidden'],
  ['::', 'forbidden'],
  ['fe80::1', 'forbidden'],
  ['fe80::1%eth0', 'forbidden'],
  ['ff02::1', 'forbidden'],
  ['2001:db8::1', 'forbidden'],
  ['::ffff:10.0.0.1', 'private'],
  ['::ffff:a9fe:a9fe', 'forbidden'],
  ['::ffff:1.1.1.1', 'public'],
  ['::10.0.0.1', 'private'],
  ['64:ff9b::a00:1', 'private'],
  ['64:ff9b::169.254.169.254', 'forbidden'],
  ['64:ff9b::101:101', 'public'],
  ['64:ff9b:1::1', 'private'],
  ['2002:a00:1::', 'private'],
  ['2002:a9fe:a9fe::1', 'forbidden'],
  ['2002:101:101::1', 'public'],
  ['2001:0:1:2:3:4:f5ff:fffe', 'private'], // Teredo holds 10.0.0.1 inverted
  ['not an address', 'forbidden'],
  ['', 'forbidden'],
];

describe('an address', () => {
  it.each(rows)('%s is %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });
});
