// The TPM of a guest: swtpm, a process of its own. It and QEMU begin as one process, which makes a pair of connected sockets and divides. So
// there is no socket that others reach, and swtpm ends when its QEMU does, however that ends, also while no agent runs.

import { guestFiles } from '../guest-life/guest-files.ts';

export const tpmProgram = 'swtpm';

/** Stands for the descriptor of QEMU's end until it is known. */
const tpmDescriptor = 'TPM-DESCRIPTOR';

export const tpmArguments = [
  ...['-chardev', `socket,id=tpm,fd=${tpmDescriptor}`],
  ...['-tpmdev', 'emulator,id=tpm0,chardev=tpm', '-device', 'tpm-crb,tpmdev=tpm0'],
];

interface Call {
  readonly program: string;
  readonly arguments: readonly string[];
}

/** The call of QEMU with a TPM: QEMU keeps the pid. */
export function withTpm({ program, arguments: words }: Call): Call {
  return { program: 'perl', arguments: ['-e', divide, guestFiles.tpmState, program, ...words] };
}

/** swtpm gets its own end and the standard descriptors, and nothing that is meant for QEMU, such as its tap. */
const divide = [
  'use Socket; use POSIX ();',
  '$^F = 255;',
  'my $state = shift;',
  'socketpair(my $ours, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "cannot connect a TPM: $!\\n";',
  'my $number = fileno($other);',
  'my $child = fork;',
  'defined $child or die "cannot start a TPM: $!\\n";',
  'if ($child == 0) {',
  '$0 = "swtpm";',
  'for (3 .. 255) { POSIX::close($_) if $_ != $number }',
  `exec "${tpmProgram}", "socket", "--tpm2", "--terminate", "--tpmstate", "backend-uri=file://$state", "--ctrl", "type=unixio,clientfd=$number"`,
  `or print STDERR "cannot start ${tpmProgram}: $!; install the package ${tpmProgram}\\n";`,
  'POSIX::_exit(1) }',
  'close $other;',
  '$number = fileno($ours);',
  `s/${tpmDescriptor}/$number/ for @ARGV;`,
  'exec @ARGV or die "cannot start $ARGV[0]: $!\\n";',
].join(' ');
