// `berth login`: gets a token with the user's account at an OpenID provider, or with the identity of a CI job, and keeps it in a
// context. Passwords are typed into the provider's own pages only.

import { Command } from 'commander';
import type { LoggedIn, LoginProvider } from '../../../api/routes/login.ts';
import type { UserClient } from '../../../api/client/user-client.ts';
import { randomSecret, system } from '../../../base/system.ts';
import type { Cli } from '../../cli.ts';
import { attempting, usageError } from '../../exit-codes.ts';
import { readTextFile } from '../../options/read-file.ts';
import { age } from '../../options/units.ts';
import { visible } from '../../print/terminal.ts';
import { openSession } from '../../session.ts';
import { logInWithDevice } from './device-code.ts';
import { keepToken, loginTarget, type LoginTarget } from './login-target.ts';
import { logInWithBrowser, type Proof } from './loopback.ts';
import { openBrowser } from './open-browser.ts';
import { chosenProvider, discovered } from './provider.ts';
import { idTokenOfJob } from './workload.ts';

interface LoginOptions {
  readonly provider?: string;
  readonly device?: true;
  readonly browser: boolean;
  readonly idTokenFile?: string;
  readonly workload?: true;
  readonly audience?: string;
  readonly ca?: string;
}

export function loginCommand(cli: Cli): Command {
  return new Command('login')
    .description('Log in to a server with an account of your organization, or as a CI job')
    .argument('[url]', 'of the server; default: that of the current context')
    .option('--provider <name>', 'which of several login providers to use')
    .option('--device', 'log in by a code that you enter on another device, if the server allows it')
    .option('--no-browser', 'print the address without opening it')
    .option('--workload', 'log in as this CI job (GitHub Actions, Forgejo Actions)')
    .option('--audience <text>', "with --workload: the audience of the job's token; default: the URL of the server")
    .option('--ca <file>', 'PEM file of authorities to trust for https:, besides those that Node trusts')
    .option('--id-token-file <file>', 'log in with the ID token in a file; - reads standard input')
    .action(async (url: string | undefined, options: LoginOptions, command: Command) => {
      refuseMixed(options);
      const target = await loginTarget(cli, command, { url, ca: options.ca });
      const { client } = await openSession(cli, command, { server: target.server, anonymous: true });
      const proof = await proofOf(cli, client, { target, options });
      const loggedIn = await attempting(
        `log in to ${target.url}`,
        () => client.json<LoggedIn>('/v1/login', { method: 'POST', body: proof }),
        { Unauthenticated: 'log in again', Forbidden: 'an admin gives roles with "berth binding create"' },
      );
      await report(cli, target, loggedIn);
    });
}

function refuseMixed({ device, workload, idTokenFile, provider, audience }: LoginOptions): void {
  const ways = [device && '--device', workload && '--workload', idTokenFile !== undefined && '--id-token-file'];
  const given = ways.filter((way) => typeof way === 'string');
  if (given.length > 1) throw usageError(`${given.join(' and ')} cannot be given together`);
  if (provider !== undefined && (workload || idTokenFile !== undefined))
    throw usageError(`--provider and ${given[0]} cannot be given together`);
  if (audience !== undefined && !workload) throw usageError('--audience needs --workload');
}

async function proofOf(
  cli: Cli,
  client: UserClient,
  { target, options }: { readonly target: LoginTarget; readonly options: LoginOptions },
): Promise<Proof> {
  const web = { fetch: cli.fetch, clock: cli.clock };
  const { idTokenFile } = options;
  if (idTokenFile !== undefined)
    return { idToken: (await readTextFile(cli, idTokenFile, { what: 'the ID token', bytesMax: 16_384 })).trim() };
  if (options.workload) {
    // Never an audience that the server names: it could ask for a token that another service accepts.
    const audience = options.audience ?? target.url.split(',')[0] ?? '';
    return { idToken: await idTokenOfJob(web, cli.environment, audience) };
  }
  const { providers } = await attempting('ask for the login providers', () =>
    client.json<{ readonly providers: readonly LoginProvider[] }>('/v1/login'),
  );
  const provider = await discovered(web, chosenProvider(providers, options.provider));
  const signal = cli.interruption();
  if (options.device)
    return logInWithDevice(provider, {
      ...web,
      signal,
      show({ url, code }) {
        cli.stderr.write(`open ${visible(url)} on any device, and enter the code ${visible(code)}\n`);
      },
    });
  return logInWithBrowser(provider, {
    ...web,
    signal,
    randomSecret,
    show(url) {
      cli.stderr.write(`log in with your browser: ${visible(url)}\n`);
      if (options.browser) openBrowser(cli, url, system.platform());
    },
  });
}

async function report(cli: Cli, target: LoginTarget, { token, name, user, expiresAtMs }: LoggedIn): Promise<void> {
  const isCurrent = await keepToken(cli, target, { token, tokenName: name });
  const which = isCurrent ? 'it is current' : `"berth context use ${target.name}" switches to it`;
  const lasts = age(expiresAtMs - cli.clock.nowMs() + 30_000); // to the nearest minute
  cli.stdout.write(`logged in to ${target.url} as ${visible(user)} for ${lasts}; context ${target.name}: ${which}\n`);
  if (cli.environment['BERTH_TOKEN'])
    cli.stderr.write('berth: BERTH_TOKEN is set, and is used instead of this login\n');
}
