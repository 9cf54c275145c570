import { describe, expect, it } from 'vitest';
import {
  age,
  bytes,
  memory,
  parseBandwidth,
  parseDiskGiB,
  parseDurationMs,
  parseGiB,
  parseInteger,
  parseLabels,
  parseMemoryMiB,
  parsePort,
} from './units.ts';

describe('what people type', () => {
  it.each([
    ['512MiB', 512],
    ['1GiB', 1024],
    ['1.5g', 1536],
    ['2 TiB', 2 * 1024 * 1024],
  ])('--memory %s', (text, mebi) => expect(parseMemoryMiB(text)).toBe(mebi));

  it.each(['512', '', '1KiB', '0.3MiB', '-1GiB', '1GB!', '1e3MiB'])('--memory %s is refused', (text) =>
    expect(() => parseMemoryMiB(text)).toThrow('--memory cannot be'),
  );

  it.each(['1MiB', '15MiB', '65TiB'])('--memory %s is refused with what may be, in the words of the flag', (text) =>
    expect(() => parseMemoryMiB(text)).toThrow(
      expect.objectContaining({ message: `--memory cannot be "${text}"`, advice: 'from 16 MiB to 64 TiB' }),
    ),
  );

  it.each([
    ['1KiB', 1024],
    ['512 k', 524_288],
    ['1.5MiB', 1_572_864],
    ['1TiB', 2 ** 40],
  ])('--bandwidth %s', (text, bytesPerSecond) => expect(parseBandwidth('--bandwidth', text)).toBe(bytesPerSecond));

  it.each([
    ['100', 'write an amount per second, with its unit: 512KiB, 100MiB, 1GiB'],
    ['3x', 'write an amount per second, with its unit: 512KiB, 100MiB, 1GiB'],
    ['0KiB', 'from 1 KiB to 1 TiB per second'],
    ['2TiB', 'from 1 KiB to 1 TiB per second'],
  ])('--bandwidth %s is refused', (text, advice) =>
    expect(() => parseBandwidth('--bandwidth', text)).toThrow(
      expect.objectContaining({ message: `--bandwidth cannot be "${text}"`, advice }),
    ),
  );

  it('more than a disk or a volume may have is refused in the words of the flag', () => {
    expect(() => parseDiskGiB('1025TiB')).toThrow(expect.objectContaining({ advice: 'at most 1024 TiB' }));
    expect(() => parseGiB('--size', '65TiB')).toThrow(expect.objectContaining({ advice: 'at most 64 TiB' }));
    expect(parseGiB('--size', '64TiB')).toBe(65_536);
  });

  it.each([
    ['5', 5],
    ['-5', -5],
    ['0', 0],
  ])('--priority %s', (text, number) => expect(parseInteger('--priority', text, { min: -9, max: 9 })).toBe(number));

  it.each(['', '-', '1.5', '10', '-10', '1e1', '--5'])('--priority %s is refused', (text) =>
    expect(() => parseInteger('--priority', text, { min: -9, max: 9 })).toThrow('whole number from -9 to 9'),
  );

  it.each([
    ['10GiB', 10],
    ['1TiB', 1024],
    ['0', 0],
  ])('--disk %s', (text, gibi) => expect(parseDiskGiB(text)).toBe(gibi));

  it.each(['10', '512MiB', '0.5GiB'])('--disk %s is refused', (text) =>
    expect(() => parseDiskGiB(text)).toThrow('--disk cannot be'),
  );

  it.each([
    ['90s', 90_000],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['250ms', 250],
    ['1.5s', 1_500],
  ])('--timeout %s', (text, ms) => expect(parseDurationMs('--timeout', text)).toBe(ms));

  it.each(['', '5', 's', '5 m', '-5m', '5m1h'])('--timeout %s is refused', (text) =>
    expect(() => parseDurationMs('--timeout', text)).toThrow('--timeout cannot be'),
  );

  it.each([
    ['80', { hostPort: 0, guestPort: 80, protocol: 'tcp' }],
    ['8080:80', { hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
    ['5353:53/udp', { hostPort: 5353, guestPort: 53, protocol: 'udp' }],
  ])('--publish %s', (text, port) => expect(parsePort(text)).toEqual(port));

  it.each(['', ':80', '0', '80:0', '65536', '80/sctp', '127.0.0.1:80:80', '$(id)'])('--publish %s is refused', (text) =>
    expect(() => parsePort(text)).toThrow('--publish cannot be'),
  );

  it('labels, the last of one key winning, and no key special', () => {
    const labels = parseLabels('--label', ['a=1', 'b=x=y', 'a=2', '__proto__=p']);
    expect(Object.entries(labels)).toEqual([
      ['a', '2'],
      ['b', 'x=y'],
      ['__proto__', 'p'],
    ]);
  });
});

describe('what people see', () => {
  it.each([
    [-5, '0s'],
    [119_000, '119s'],
    [185_000, '3m5s'],
    [3_600_000, '60m'],
    [3 * 3_600_000 + 120_000, '3h2m'],
    [50 * 3_600_000, '2d2h'],
    [20 * 86_400_000, '20d'],
  ])('an age of %i ms as %s', (ms, text) => expect(age(ms)).toBe(text));

  it.each([
    [512, '512 MiB'],
    [2048, '2 GiB'],
    [24_064, '23.5 GiB'],
  ])('%i MiB as %s', (mebi, text) => expect(memory(mebi)).toBe(text));

  it.each([
    [999, '999 B'],
    [1536, '1.5 KiB'],
    [19_070_976, '18.2 MiB'],
  ])('%i bytes as %s', (count, text) => expect(bytes(count)).toBe(text));
});
