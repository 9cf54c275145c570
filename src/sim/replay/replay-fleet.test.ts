import { describe, expect, it } from 'vitest';
import { fleetFromList, isFleetShape, parseFleetShape } from './replay-fleet.ts';

describe('the fleet of a replay', () => {
  it('grows by one shape', () => {
    expect(parseFleetShape('64x128GiB')).toMatchObject({
      hosts: [],
      growsBy: { cpuMilli: 64_000, memoryMiB: 131_072, diskMiB: undefined, gpus: 0, gpuModel: '' },
    });
  });
  it('is so many hosts, in order of their names', () => {
    const { hosts, growsBy } = parseFleetShape('12x0.5x1.5TiB');
    expect(growsBy).toBeNull();
    expect(hosts).toHaveLength(12);
    expect(hosts.map(({ name }) => name)).toEqual(hosts.map(({ name }) => name).toSorted());
    expect(hosts[0]?.shape).toMatchObject({ cpuMilli: 500, memoryMiB: 1.5 * 1024 * 1024 });
  });
  it('has GPUs, disks and networks', () => {
    expect(parseFleetShape('8x16GiBx4:A100-40G,disk=2TiB,network=200').growsBy).toEqual({
      cpuMilli: 8000,
      memoryMiB: 16_384,
      diskMiB: 2 * 1024 * 1024,
      networkPercent: 200,
      gpus: 4,
      gpuModel: 'A100-40G',
    });
  });
  it('is a list of hosts, of one shape or not', () => {
    const list = (...rows: readonly string[]) =>
      fleetFromList(new TextEncoder().encode(['sn,cpu_milli,memory_mib,gpu,model', ...rows].join('\n')), 'hosts.csv');
    expect(list('b,1000,1,0,', 'a,1000,1,0,')).toMatchObject({ hosts: [{ name: 'a' }, { name: 'b' }], growsBy: null });
    expect(list('b,1000,1,0,', 'a,1000,1,0,').uniform).not.toBeNull();
    expect(list('b,1000,1,0,', 'a,2000,1,0,').uniform).toBeNull();
    expect(() => list()).toThrow('it names no host');
  });
  it('is told from a file', () => {
    expect(['64x128GiB', '3x64x128', 'hosts.csv', './8x8'].map(isFleetShape)).toEqual([true, true, false, false]);
  });
  it.each([
    ['64x128', 'memory has MiB, GiB or TiB'],
    ['0x128GiB', 'a host has at least one CPU'],
    ['0x64x128GiB', 'there are 1 to 1000000 hosts'],
    ['64x128GiBx999', 'a host has at most 128 GPUs'],
    ['64x128GiB,disk=2', '"2" has no MiB, GiB or TiB'],
    ['64x128GiB,network=fast', 'percent of one card'],
    ['64x128GiB,colour=red', '"colour" is unknown; known are disk and network'],
  ])('refuses %s, saying why', (text, why) => {
    expect(() => parseFleetShape(text)).toThrow(why);
  });
});
