import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { seedFiles } from './seed.ts';

const input = {
  instanceId: 'inst_00000000000000000000000001',
  incarnation: 3,
  hostname: 'web-1',
  sshKeys: [] as string[],
  userData: '',
  vendorData: '',
  macAddress: '52:54:00:01:02:03',
};
const read = (change: Partial<typeof input> = {}) =>
  Object.fromEntries(
    seedFiles({ ...input, ...change }).map((file) => [file.name, new TextDecoder().decode(file.data)]),
  );

describe('the seed', () => {
  it('names the life of the instance, so that cloud-init runs once for each', () => {
    expect(read()['meta-data']).toBe('instance-id: inst_00000000000000000000000001-3\nlocal-hostname: web-1\n');
  });

  it('passes user-data on as it is', () => {
    const userData = '#!/bin/sh\necho "ü: {}" \t\n';
    expect(read({ userData })['user-data']).toBe(userData);
  });

  it('has vendor-data beside it, as it is, where there is any', () => {
    const vendorData = '#cloud-config\nlocale: "ü"\n';
    expect(read({ vendorData })).toMatchObject({ 'vendor-data': vendorData });
    expect(Object.keys(read())).toEqual(['meta-data', 'user-data', 'network-config']);
  });

  it('makes a cloud-config of hostname and keys when there is no user-data', () => {
    const key = 'ssh-ed25519 AAAAC3Nz "me": #1';
    const text = read({ sshKeys: [key] })['user-data'] ?? '';
    expect(text.startsWith('#cloud-config\n')).toBe(true);
    expect(parse(text)).toEqual({
      hostname: 'web-1',
      preserve_hostname: false,
      ssh_pwauth: false,
      ssh_authorized_keys: [key],
    });
  });

  it('puts keys into meta-data, where cloud-init adds them to any user-data', () => {
    const sshKeys = ['ssh-ed25519 AAAA a', 'ssh-rsa BBBB b: c'];
    expect(parse(read({ sshKeys, userData: '#!/bin/sh\n' })['meta-data'] ?? '')['public-keys']).toEqual(sshKeys);
  });

  it.each(['123', 'true', 'no', '1e5'])('keeps the hostname "%s" a string', (hostname) => {
    expect(parse(read({ hostname })['meta-data'] ?? '')['local-hostname']).toBe(hostname);
  });

  it('refuses a key that would become two', () => {
    expect(() => read({ sshKeys: ['ssh-ed25519 A\nssh-rsa B'] })).toThrow(/one key per entry/);
  });

  it('configures the one network card by its address', () => {
    expect(parse(read()['network-config'] ?? '')).toEqual({
      version: 2,
      ethernets: { eth0: { match: { macaddress: '52:54:00:01:02:03' }, 'set-name': 'eth0', dhcp4: true } },
    });
  });
});
