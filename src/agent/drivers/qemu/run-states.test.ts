import { describe, expect, it } from 'vitest';
import { complaints } from './complaints.ts';
import { standingOf } from './run-states.ts';

describe('a run state of QEMU', () => {
  it.each([
    ['running', 'running', undefined],
    ['prelaunch', 'running', 'HeldByHypervisor'],
    ['paused', 'suspended', undefined],
    ['suspended', 'running', 'GuestAsleep'],
    ['io-error', 'waiting-for-disk', undefined],
    ['shutdown', 'ended', 'guest-shutdown'],
    ['guest-panicked', 'ended', 'guest-panic'],
    ['watchdog', 'halted', 'GuestWatchdog'],
    ['internal-error', 'halted', 'HypervisorInternalError'],
    ['debug', 'running', 'HeldByHypervisor'],
    ['inmigrate', 'running', 'HeldByHypervisor'],
    ['finish-migrate', 'running', 'HeldByHypervisor'],
    ['postmigrate', 'running', 'HeldByHypervisor'],
    ['colo', 'running', 'HeldByHypervisor'],
    ['save-vm', 'running', 'HeldByHypervisor'],
    ['restore-vm', 'running', 'HeldByHypervisor'],
    ['of-a-newer-qemu', 'running', 'HeldByHypervisor'],
    ['constructor', 'running', 'HeldByHypervisor'],
  ])('%s makes the guest %s (%s)', (runState, guest, why) => {
    const standing = standingOf(runState);
    expect(standing.guest).toBe(guest);
    const given =
      standing.guest === 'running'
        ? standing.trouble?.code
        : standing.guest === 'halted'
          ? standing.reason.code
          : standing.guest === 'ended'
            ? standing.how
            : undefined;
    expect(given).toBe(why);
  });
});

// As QEMU 7.2 wrote it on a host whose KVM cannot emulate what a boot loader does.
const internalError = `KVM internal error. Suberror: 1
extra data[0]: 0x0000000000000001
emulation failure
EAX=00000088 EBX=00000000 ECX=00000000 EDX=001006e5
EIP=00008ffc EFL=00000006 [-----P-] CPL=0 II=0 A20=1 SMM=0 HLT=0
ES =0028 00000000 ffffffff 00c09300 DPL=0 DS   [-WA]
LDT=0000 00000000 00000000 00000000
GDT=     00009400 0000002f
CR0=00000011 CR2=00000000 CR3=00000000 CR4=00000000
DR6=00000000ffff0ff0 DR7=0000000000000400
EFER=0000000000000000
Code=eb de ff 0d a8 39 00 00 75 06 ff 15 b4 96 00 00 61 83 c4 04 <cf> c3 90
`;

describe('what QEMU complains of', () => {
  it.each([
    [
      'an internal error of KVM, without its registers',
      internalError,
      'KVM internal error. Suberror: 1; emulation failure',
    ],
    ['a 64-bit dump', 'emulation failure\nRAX=0000 RBX=0000\nR8 =0000 R9 =0000\nR10=0000\n', 'emulation failure'],
    [
      'its own errors',
      'qemu-system-x86_64: -blockdev {}: Could not open\n',
      'qemu-system-x86_64: -blockdev {}: Could not open',
    ],
    ['nothing', '', ''],
    ['the last five lines', 'a\nb\nc\nd\ne\nf\n', 'b; c; d; e; f'],
  ])('is %s', (_, text, words) => {
    expect(complaints(text)).toBe(words);
  });
});
