// What comes before git on the command line, so that a server that takes over git reaches nothing of this host: a user of its own where root runs
// the agent, namespaces of its own where the host allows them, no way to more rights, and limits of files and memory.
//
//   setpriv --pdeathsig ─► unshare ─► prlimit ─► setpriv --reuid --no-new-privs ─► git

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { toolEnvironment } from '../../host/run-tool.ts';

const run = promisify(execFile);

/** Words before the program; the first that works is used. */
const namespaces = {
  root: [
    ['unshare', '--mount', '--ipc', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--'],
    // In a chroot, whose root is no mount point.
    ['unshare', '--mount', '--propagation', 'unchanged', '--pid', '--fork', '--kill-child=KILL', '--mount-proc', '--'],
    ['unshare', '--pid', '--fork', '--kill-child=KILL', '--'],
    [],
  ],
  other: [
    [
      'unshare',
      '--user',
      '--map-current-user',
      '--mount',
      '--pid',
      '--fork',
      '--kill-child=KILL',
      '--mount-proc',
      '--',
    ],
    [],
  ],
} as const;

/** With the agent. The kernel forgets this when the user changes, so it is asked for again after that. */
const endsWithParent = ['--pdeathsig', 'KILL'] as const;

export interface GitJail {
  /** The words before git. `user` must be undefined unless root runs the agent. */
  words(limits: GitLimits, user: number | undefined): readonly string[];
  /** Whether these words change the user; otherwise the caller must. */
  readonly changesUser: boolean;
  /** What is missing, for the log; undefined: nothing. */
  readonly fault: string | undefined;
}

interface GitLimits {
  readonly fileBytesMax: number;
  readonly memoryBytesMax: number;
}

/** Elsewhere than on Linux only files are limited. */
export async function chooseGitJail({
  userId,
  works = runs,
}: {
  readonly userId: number;
  /** Whether this host can do it. Default: it is tried. */
  readonly works?: (words: readonly string[]) => Promise<boolean>;
}): Promise<GitJail> {
  const kinds = userId === 0 ? namespaces.root : namespaces.other;
  for (const kind of kinds) {
    const outer = ['setpriv', ...endsWithParent, '--', ...kind];
    if (!(await works([...outer, 'prlimit', '--core=0', '--', 'setpriv', '--no-new-privs', '--', 'true']))) continue;
    const fault = kind.length === 0 ? 'this host allows no namespaces (unshare)' : undefined;
    return {
      words: (limits, user) => [...outer, ...limited(limits, user), ...lessened(user)],
      changesUser: true,
      fault,
    };
  }
  return {
    words: ({ fileBytesMax }) => ['sh', '-c', `ulimit -f ${Math.ceil(fileBytesMax / 512)}; ${keepWriting}`, 'sh'],
    changesUser: false,
    fault: 'this host has no setpriv and prlimit (package util-linux)',
  };
}

/** Of processes only for a user of its own: the agent's has others. */
function limited({ fileBytesMax, memoryBytesMax }: GitLimits, user: number | undefined): readonly string[] {
  const processes = user === undefined ? [] : ['--nproc=256'];
  return [
    'prlimit',
    `--fsize=${fileBytesMax}`,
    `--as=${memoryBytesMax}`,
    '--core=0',
    '--nofile=1024',
    ...processes,
    '--',
  ];
}

function lessened(user: number | undefined): readonly string[] {
  const own =
    user === undefined
      ? []
      : [
          ...['--reuid', String(user), '--regid', String(user), '--clear-groups'],
          ...['--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all'],
        ];
  return ['setpriv', ...own, ...endsWithParent, '--no-new-privs', '--', ...toldOfLimits];
}

/** At the limit of a file git then says "File too large", and is not ended by SIGXFSZ without a word. */
const keepWriting = 'trap "" XFSZ; exec "$@"';
const toldOfLimits = ['sh', '-c', keepWriting, 'sh'] as const;

async function runs([program = '', ...words]: readonly string[]): Promise<boolean> {
  return run(program, words, { timeout: 10_000, env: toolEnvironment }).then(
    () => true,
    () => false, // it is not there, or not allowed
  );
}
