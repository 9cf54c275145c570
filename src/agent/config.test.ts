import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/errors.ts';
import { parse } from '../api/parse.ts';
import { AgentConfig } from './config.ts';

const fieldOf = (input: unknown): string | undefined => {
  try {
    parse(AgentConfig, input);
    return 'none';
  } catch (error) {
    return error instanceof ApiError ? error.field : 'foreign';
  }
};

describe("the agent's configuration", () => {
  it('needs only a host name', () => {
    expect(parse(AgentConfig, { hostName: 'host-1' })).toEqual({
      hostName: 'host-1',
      libvirtUri: 'qemu:///system',
      libvirtNetwork: 'default',
      network: 'user',
      natSubnet: '10.77.0.0/16',
      natDenied: [],
      metadataTokens: 'optional',
      movePorts: { first: 49_152, last: 49_215 },
      guestUsers: { first: 1_900_000_000, count: 65_536 },
      hostPortsReached: [],
      userPrivateAddresses: 'allow',
      serverUrl: 'http://127.0.0.1:7070',
      dataDirectory: '/var/lib/berth/agent',
      drivers: ['qemu'],
      accelerator: 'auto',
      imageRoots: ['/var/lib/berth/images'],
      imageChecksums: 'recorded',
      imageCredentials: [],
      imagePrivateAddresses: 'named',
      insecureHttp: false,
      labels: {},
      publishAddress: '127.0.0.1',
      portRange: { first: 20_000, last: 29_999 },
      silenceMsMax: 300_000,
      devices: [],
      pciGpus: false,
      numaCells: false,
      traits: [],
      repositoryNetworks: [],
      repositoryCredentials: [],
      repositoryMiBMax: 2048,
      repositoryMsMax: 600_000,
      logLevel: 'info',
      logFormat: 'auto',
    });
  });

  it.each([
    ['an unknown field', { hostName: 'a', hostname: 'b' }, 'hostname'],
    ['no host name', {}, 'hostName'],
    ['a bad host name', { hostName: '../a' }, 'hostName'],
    ['a URL with a path', { hostName: 'a', serverUrl: 'http://b/c' }, 'serverUrl'],
    ['a relative directory', { hostName: 'a', dataDirectory: 'x' }, 'dataDirectory'],
    ['a driver twice', { hostName: 'a', drivers: ['qemu', 'qemu'] }, 'drivers'],
    ['an accelerator that there is not', { hostName: 'a', accelerator: 'xen' }, 'accelerator'],
    ['a port out of range', { hostName: 'a', portRange: { first: 0, last: 5 } }, 'portRange.first'],
    ['an amount that is not whole', { hostName: 'a', capacity: { VCPU: 1.5 } }, 'capacity.VCPU'],
    ['a device without a name', { hostName: 'a', devices: [{ amounts: {} }] }, 'devices[0].name'],
    ['a trait in small letters', { hostName: 'a', traits: ['fast'] }, 'traits[0]'],
    ['a network that is none', { hostName: 'a', network: 'bridge' }, 'network'],
    ['a bridge that can have no such name', { hostName: 'a', network: 'bridge:br 0' }, 'network'],
    ['a name that is denied', { hostName: 'a', natDenied: ['example.org'] }, 'natDenied[0]'],
    ['a bad label', { hostName: 'a', labels: { zone: 'a b' } }, 'labels.zone'],
  ])('refuses %s and names the field', (_, input, field) => expect(fieldOf(input)).toBe(field));
});
