// `berth cp FROM TO`: copies files to and from a guest, one side being NAME:PATH. The engine copies for containers; for
// other guests the user's own scp, forwarded through the control plane.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { copyFromContainer, copyToContainer } from './copy-container.ts';
import { attempting, CommandError, CommandExit, usageError } from '../exit-codes.ts';
import { adviceWhenSuspended, needsSsh } from './guest-line.ts';
import { openSession } from '../session.ts';
import { runSsh, sshOptions } from './ssh-options.ts';
import { seeInstances } from '../instances/instance-advice.ts';

interface CpOptions {
  readonly recursive?: true;
  readonly container?: string;
  readonly login?: string;
  readonly identity?: string;
  readonly port: string;
}

export function cpCommand(cli: Cli): Command {
  return new Command('cp')
    .description('Copy files to or from an instance')
    .argument('<from>', 'a local file, or NAME:PATH, or USER@NAME:PATH')
    .argument('<to>', 'the same; exactly one of the two is in an instance')
    .option('-r, --recursive', 'copy directories with their contents')
    .option('-c, --container <name>', 'container of the instance; default: the first')
    .option('-l, --login <user>', "for ssh: user to log in as; default: the image's default user")
    .option('-i, --identity <file>', 'your private key; default: the one in ~/.ssh whose public key the instance has')
    .option('-p, --port <port>', 'port of its ssh server', '22')
    .addHelpText(
      'after',
      '\nContainers need no extra software. A virtual machine needs an ssh server and your key, as for "berth ssh".',
    )
    .action(async (from: string, to: string, options: CpOptions, command: Command) => {
      const places = [from, to].map(placeOf);
      const [remote, second] = places.filter((place) => place.name !== undefined);
      if (remote?.name === undefined || second !== undefined)
        throw usageError(
          'exactly one of the two must be in an instance: NAME:PATH',
          'for a local file with a colon in its name write ./a:b',
        );
      const { name } = remote;
      // A user name selects ssh.
      if (
        remote.user !== undefined ||
        options.login !== undefined ||
        !(await byEngine(cli, command, { from: places[0] === remote, remote, places, options }))
      ) {
        if (options.container !== undefined) throw usageError(`instance "${name}" has no containers`);
        const target = remote.user === undefined ? name : `${remote.user}@${name}`;
        const { words } = await sshOptions(cli, command, { ...options, target });
        const flags = options.recursive ? ['-r'] : [];
        const code = await runSsh(cli, 'scp', [...flags, ...words, '--', ...places.map(({ word }) => word)]);
        if (code !== 0) throw new CommandExit(code);
      }
    });
}

/** False: the instance is not a group of containers. */
async function byEngine(
  cli: Cli,
  command: Command,
  {
    from,
    remote,
    places,
    options,
  }: {
    readonly from: boolean;
    readonly remote: Place;
    readonly places: readonly Place[];
    readonly options: CpOptions;
  },
): Promise<boolean> {
  const session = await openSession(cli, command);
  const { name: instance = '', path: inside } = remote;
  const here = places.find((place) => place !== remote)?.path ?? '';
  const { container, recursive = false } = options;
  const copy = { instance, inside, here, recursive, ...(container === undefined ? {} : { container }) };
  try {
    await attempting(
      `copy files of instance "${instance}"`,
      () => (from ? copyFromContainer(cli, session, copy) : copyToContainer(cli, session, copy)),
      { NotFound: seeInstances, Conflict: adviceWhenSuspended(instance) },
    );
    return true;
  } catch (error) {
    if (error instanceof CommandError && needsSsh(error.cause)) return false;
    throw error;
  }
}

interface Place {
  /** As written, for scp. */
  readonly word: string;
  readonly path: string;
  readonly name?: string;
  readonly user?: string;
}

/** As scp reads it: a colon before any slash makes it remote. */
function placeOf(word: string): Place {
  const [whole = '', user, name] = /^([^/:@]+@)?([^/:@]+):/.exec(word) ?? [];
  if (name === undefined) return { word: word.startsWith('-') ? `./${word}` : word, path: word };
  return { word, path: word.slice(whole.length), name, ...(user === undefined ? {} : { user: user.slice(0, -1) }) };
}
