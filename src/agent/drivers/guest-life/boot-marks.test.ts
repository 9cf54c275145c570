import { describe, expect, it } from 'vitest';
import { bootMarkScanner } from './boot-marks.ts';

const scan = (...pieces: string[]) => {
  const scanner = bootMarkScanner();
  for (const piece of pieces) scanner.push(new TextEncoder().encode(piece));
  return scanner.marks();
};

describe('boot marks', () => {
  const rows: [name: string, pieces: string[], marks: object][] = [
    [
      'the greeting of the tiny image',
      ['berth: address eth0 10.0.2.15\r\nberth: ready\r\n'],
      { ready: true, address: '10.0.2.15' },
    ],
    ['cuts anywhere', ['ber', 'th: rea', 'dy', '\n'], { ready: true }],
    ['terminal colours', ['\x1b[32mberth: ready\x1b[0m\n'], { ready: true }],
    ['a prompt before the mark', ['login: berth: ready\n'], { ready: true }],
    [
      'the table and the end of cloud-init',
      [
        'ci-info: |   lo   | True |         127.0.0.1         |   255.0.0.0   |  host  |         .         |\n',
        'ci-info: |  eth0  | True |         10.0.2.15         | 255.255.255.0 | global | 52:54:00:12:34:56 |\n',
        'ci-info: |  eth0  | True | fe80::5054:ff:fe12:3456/64 |       .       |  link  | 52:54:00:12:34:56 |\n',
        '[   25.2] cloud-init[512]: Cloud-init v. 22.4.2 finished at Sat, 21 Nov 2026 04:00:00 +0000. Up 25.1 seconds\n',
      ],
      { ready: true, address: '10.0.2.15' },
    ],
    ['an interface that is down', ['ci-info: | eth0 | False | . | . | . | 52:54:00:12:34:56 |\n'], { ready: false }],
    ['an address that is none', ['berth: address eth0 999.1.1.1\n'], { ready: false }],
    ['IPv6', ['berth: address eth0 fec0::5054\n'], { ready: false, address: 'fec0::5054' }],
    ['a mark without its line end', ['berth: ready'], { ready: false }],
    ['a mark with more behind it', ['berth: ready or not\n'], { ready: false }],
    ['bytes that are no text', ['\xff\xfe\x00\nberth: ready\n'], { ready: true }],
    ['an endless line, then the mark', ['x'.repeat(100_000), '\nberth: ready\n'], { ready: true }],
  ];
  it.each(rows)('are read from %s', (_name, pieces, marks) => {
    expect(scan(...pieces)).toEqual(marks);
  });

  it('say when something changed, and only then', () => {
    const scanner = bootMarkScanner();
    const push = (text: string) => scanner.push(new TextEncoder().encode(text));
    expect(['hello\n', 'berth: ready\n', 'berth: ready\n'].map(push)).toEqual([false, true, false]);
  });
});
