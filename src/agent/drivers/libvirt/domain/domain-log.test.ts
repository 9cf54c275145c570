import { expect, it } from 'vitest';
import { parseDomainLog } from './domain-log.ts';

const start = `2026-01-31 12:00:00.000+0000: starting up libvirt version: 9.0.0, package: 9.0.0-4
LC_ALL=C \\
/usr/bin/qemu-system-x86_64 \\
-name guest=berth-x,debug-threads=on \\
-msg timestamp=on`;
const end = (reason: string): string => `2026-01-31 12:00:02.000+0000: shutting down, reason=${reason}`;
const term = '2026-01-31T12:00:01.000000Z qemu-system-x86_64: terminating on signal 15 from pid 7 (/usr/sbin/libvirtd)';
const complaint = '2026-01-31T12:00:01.000000Z qemu-system-x86_64: Could not open the disk';

it.each([
  ['nothing', '', undefined, ''],
  ['a run that goes on', start, undefined, ''],
  ['a guest that powered itself off', [start, end('shutdown')].join('\n'), 'shutdown', ''],
  ['a machine that was ended', [start, term, end('destroyed')].join('\n'), 'destroyed', ''],
  ['what QEMU complained of', [start, complaint, end('failed')].join('\n'), 'failed', complaint],
  [
    'what KVM complained of, without its registers',
    [start, 'KVM internal error. Suberror: 1', 'emulation failure', 'EAX=00000088 EBX=00000000', end('destroyed')].join(
      '\n',
    ),
    'destroyed',
    'KVM internal error. Suberror: 1; emulation failure',
  ],
  ['the last of two runs', [start, complaint, end('crashed'), start, end('shutdown')].join('\n'), 'shutdown', ''],
  ['a run that goes on after one that ended', [start, end('crashed'), start].join('\n'), undefined, ''],
  ['a reason that is not known', [start, end('bored')].join('\n'), undefined, ''],
  ['a log whose start was cut off', [`-msg timestamp=on`, end('from snapshot')].join('\n'), 'from snapshot', ''],
  ['a guest that writes such a line in the middle of one', [start, `x ${end('shutdown')}`].join('\n'), undefined, ''],
])('reads %s', (_, text, reason, words) => {
  expect(parseDomainLog(text)).toEqual({ reason, words });
});
