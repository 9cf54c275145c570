// `berth audit`: for one version, the bare command still checks the consistency of the fleet, as `berth verify` does.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { verifyingCommand } from '../fleet/verify.ts';
import { auditLogCommand } from './audit-log.ts';

export function auditCommand(cli: Cli): Command {
  const notice = (): void => {
    cli.stderr.write(
      'berth: "berth audit" is now "berth verify"; the old name goes away with the next version; "berth audit log" shows the audit log\n',
    );
  };
  return verifyingCommand(cli, new Command('audit'), notice)
    .description('Show the audit log; alone, the former name of "berth verify"')
    .addCommand(auditLogCommand(cli));
}
