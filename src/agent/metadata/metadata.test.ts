import { describe, expect, it } from 'vitest';
import { answerMetadata } from './metadata.ts';

const guest = {
  metadataId: 'inst_1-3',
  hostname: 'web-1',
  imageName: 'debian-12',
  sshKeys: ['ssh-ed25519 AAAA ann', 'ssh-rsa BBBB ben'],
  userData: '#!/bin/sh\necho é\n',
  vendorData: '#cloud-config\n{}\n',
  address: '10.77.3.4',
};
const bare = { ...guest, sshKeys: [], userData: '', vendorData: '' };

describe('the metadata of a guest', () => {
  it.each([
    ['/', '2009-04-04/\nlatest/\nnocloud/'],
    ['/latest', 'meta-data/\nuser-data'],
    ['/latest/', 'meta-data/\nuser-data'],
    ['/2009-04-04/', 'meta-data/\nuser-data'],
    [
      '/2009-04-04/meta-data/',
      'ami-id\nhostname\ninstance-id\nlocal-hostname\nlocal-ipv4\npublic-hostname\npublic-keys/',
    ],
    ['/latest/meta-data/ami-id', 'debian-12'],
    ['/latest/meta-data/hostname', 'web-1'],
    ['/latest/meta-data/local-hostname', 'web-1'],
    ['/latest/meta-data/public-hostname', 'web-1'],
    ['/latest/meta-data/instance-id', 'inst_1-3'],
    ['/latest/meta-data/local-ipv4', '10.77.3.4'],
    ['/latest/meta-data/public-keys/', '0=key-0\n1=key-1'],
    ['/latest/meta-data/public-keys', '0=key-0\n1=key-1'],
    ['/latest/meta-data/public-keys/1/', 'openssh-key'],
    ['/latest/meta-data/public-keys/0/openssh-key', 'ssh-ed25519 AAAA ann'],
    ['/2009-04-04/meta-data/public-keys/1/openssh-key', 'ssh-rsa BBBB ben'],
    ['/latest/user-data', '#!/bin/sh\necho é\n'],
  ])('has at %s what EC2 has there', (path, answer) => {
    expect(answerMetadata(guest, path)).toBe(answer);
  });

  it.each([
    ['/nocloud/', 'meta-data\nuser-data\nvendor-data'],
    ['/nocloud/user-data', '#!/bin/sh\necho é\n'],
    ['/nocloud/vendor-data', '#cloud-config\n{}\n'],
    [
      '/nocloud/meta-data',
      'instance-id: inst_1-3\nlocal-hostname: web-1\npublic-keys:\n  - "ssh-ed25519 AAAA ann"\n  - "ssh-rsa BBBB ben"\n',
    ],
  ])('has at %s what a NoCloud seed has there', (path, answer) => {
    expect(answerMetadata(guest, path)).toBe(answer);
  });

  it('has user-data for NoCloud, which reads no seed without, also where there is none', () => {
    expect(answerMetadata(bare, '/nocloud/user-data')).toMatch(/^#cloud-config\nhostname: web-1\n/);
    expect(answerMetadata(bare, '/nocloud/vendor-data')).toBeUndefined();
  });

  it.each([
    ['another version', '/2016-09-02/meta-data/instance-id'],
    ['below a leaf', '/latest/meta-data/hostname/'],
    ['a key that is not there', '/latest/meta-data/public-keys/2/openssh-key'],
    ['what every object of the language has', '/latest/meta-data/constructor'],
    ['the prototype', '/__proto__/'],
    ['a step up', '/latest/meta-data/../user-data'],
    ['an empty name', '//latest/meta-data/'],
    ['no slash at all', 'latest'],
    ['nothing', ''],
    ['escapes, which EC2 does not read either', '/latest/meta%2ddata/'],
  ])('has nothing at %s', (_what, path) => {
    expect(answerMetadata(guest, path)).toBeUndefined();
  });

  it('lists neither keys nor user-data where there are none', () => {
    expect(answerMetadata(bare, '/latest/')).toBe('meta-data/');
    expect(answerMetadata(bare, '/latest/meta-data/')).not.toContain('public-keys');
    expect(answerMetadata(bare, '/latest/user-data')).toBeUndefined();
    expect(answerMetadata(bare, '/latest/meta-data/public-keys/')).toBeUndefined();
  });
});
