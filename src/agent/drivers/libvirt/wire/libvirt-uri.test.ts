import { expect, it } from 'vitest';
import { libvirtAddress } from './libvirt-uri.ts';

const system = ['/run/libvirt/virtqemud-sock', '/run/libvirt/libvirt-sock'];

it.each([
  ['qemu:///system', system],
  ['qemu+unix:///system', system],
  ['qemu:///system?socket=/tmp/a%20host/libvirt-sock', ['/tmp/a host/libvirt-sock']],
])('%s listens at %j', (text, sockets) => {
  expect(libvirtAddress(text)).toEqual({ sockets, uri: 'qemu:///system' });
});

it.each([
  'qemu:///session',
  'qemu+ssh://root@other/system',
  'qemu://other/system',
  'xen:///system',
  'test:///default',
  'qemu:///system?socket=relative',
  'qemu:///system?socket=',
  'qemu:///system?socket=%zz',
  'qemu:///system?socket=/a&mode=direct',
  'qemu:///system?keyfile=/a',
  '',
])('"%s" is refused, and the message names the variable', (text) => {
  expect(() => libvirtAddress(text)).toThrow(/LIBVIRT_URI/);
});
