// `berth dashboard`: a link that opens the dashboard in a browser, as the bearer of the token in use. The secret of the link is after its #,
// so it is in no log of a server or proxy.

import { Command } from 'commander';
import { system } from '../../base/system.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession, type Session } from '../session.ts';
import { openBrowser } from './login/open-browser.ts';

export function dashboardCommand(cli: Cli): Command {
  return new Command('dashboard')
    .description('Print a link that opens the dashboard; it works once, within ten minutes')
    .option('--open', 'open it in the browser of this machine, too')
    .addOption(outputOption('value'))
    .action(async ({ output, open }: { output: Format; open?: true }, command: Command) => {
      const link = await dashboardLink(await openSession(cli, command));
      if (output === 'json' || output === 'yaml') await printValue(cli, output, link);
      else cli.stdout.write(`${link.url}\n`);
      if (open) openBrowser(cli, link.url, system.platform());
    });
}

/** For one use, by the bearer of this session's token. */
export async function dashboardLink({
  client,
  servers,
}: Pick<Session, 'client' | 'servers'>): Promise<{ readonly url: string; readonly expiresAtMs: number }> {
  const { path, expiresAtMs } = await attempting('ask for a link', () => client.createSessionLink());
  return { url: `${servers.current.replace(/\/$/, '')}${path}`, expiresAtMs };
}
