import { describe, expect, it } from 'vitest';
import { parseClassAmount } from './class-amounts.ts';

describe('amounts of resource classes', () => {
  it.each([
    ['cpus=64', 'VCPU', 64],
    ['VCPU=64', 'VCPU', 64],
    ['memory=64GiB', 'MEMORY_MB', 65_536],
    ['MEMORY_MB=64GiB', 'MEMORY_MB', 65_536],
    ['MEMORY_MB=512', 'MEMORY_MB', 512],
    ['disk=1TiB', 'DISK_GB', 1024],
    ['instances=20', 'INSTANCES', 20],
    ['CUSTOM_LICENSE=2', 'CUSTOM_LICENSE', 2],
    ['memory=', 'MEMORY_MB', undefined],
  ])('reads %s', (pair, resourceClass, amount) => {
    expect(parseClassAmount('--quota', pair)).toEqual({ resourceClass, amount });
  });

  it.each([
    ['ram=1GiB', '--quota cannot be "ram=1GiB"'],
    ['VCPU', '--quota cannot be "VCPU"'],
    ['cpus=two', '--quota cpus must be a whole number from 0 to 1099511627776, not "two"'],
    ['memory=1XB', '--quota memory cannot be "1XB"'],
    ['disk=0.5GiB', '--quota disk cannot be "0.5GiB"'],
  ])('refuses %s', (pair, message) => {
    expect(() => parseClassAmount('--quota', pair)).toThrow(message);
  });
});
