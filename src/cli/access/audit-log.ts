// `berth audit log`: who did what. Each server has its own log, so every server that is known is asked.

import { Command } from 'commander';
import type { AuditLogCheck, AuditRecord } from '../../api/audit/audit-log.ts';
import { type AuditLogQuery, createUserClient, type UserClient } from '../../api/client/user-client.ts';
import { describeError } from '../../base/log.ts';
import { TlsFetch } from '../../base/tls/tls-fetch.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes } from '../exit-codes.ts';
import { parseDurationMs } from '../options/units.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession, type Session } from '../session.ts';

interface LogFlags {
  readonly since: string;
  readonly who?: string;
  readonly object?: string;
  readonly trace?: string;
  readonly verify?: true;
}

export function auditLogCommand(cli: Cli): Command {
  return new Command('log')
    .alias('ls')
    .description('Show who did what, or check that nothing was changed or removed')
    .option('--since <duration>', 'only lines that are not older', '1h')
    .option('--who <name>', 'only lines of this token, login or host')
    .option('--object <name>', 'only lines about this object: its name or id')
    .option('--trace <id>', 'only lines of this trace: the trace id of an error')
    .option(
      '--verify',
      'compare the files with their hash chain and with the store; the exit code is 7 when they differ',
    )
    .addOption(outputOption('value'))
    .action(async (flags: LogFlags, command: Command) => {
      const since = Math.max(0, Math.floor(cli.clock.nowMs() - parseDurationMs('--since', flags.since)));
      const { output } = command.optsWithGlobals<{ output: Format }>(); // the parent reads options that it has, too
      const session = await openSession(cli, command);
      if (flags.verify) return verify(cli, session, output);
      const { who, object, trace } = flags;
      const query = {
        since,
        ...(who === undefined ? {} : { who }),
        ...(object === undefined ? {} : { object }),
        ...(trace === undefined ? {} : { trace }),
      };
      const answers = await ofEachServer(cli, session, (client) => read(client, query));
      const records = answers.flat().sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.seq - b.seq));
      if (output === 'json' || output === 'yaml') return printValue(cli, output, { items: records });
      if (records.length === 0) return void cli.stdout.write('no lines\n');
      const colours = coloursFor(cli.stdout, cli.environment);
      cli.stdout.write(`${tableLines(columns, records, { colours }).join('\n')}\n`);
    });
}

async function read(client: UserClient, query: AuditLogQuery): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  let more: string | undefined;
  do {
    const page = await client.auditLog({ ...query, ...(more === undefined ? {} : { continue: more }) });
    records.push(...page.items);
    more = page.continue;
  } while (more !== undefined);
  return records;
}

async function verify(cli: Cli, session: Session, output: Format): Promise<void> {
  const checks = await ofEachServer(cli, session, (client) => client.checkAuditLog());
  if (output === 'json' || output === 'yaml') await printValue(cli, output, { items: checks });
  else cli.stdout.write(`${checks.flatMap(checkLines).join('\n')}\n`);
  if (checks.some(({ faults }) => faults.length > 0))
    throw new CommandError(exitCodes.badOutcome, 'the audit log was changed', {
      advice: 'docs/audit-log.md says what each finding means',
    });
}

function checkLines({ server, files, lines, lastSeq, headSeq, faults }: AuditLogCheck): string[] {
  const counted = `${lines} lines in ${files} files, the last is ${lastSeq}; the store knows ${headSeq}`;
  return [
    `${visible(server)}: ${faults.length === 0 ? 'whole: ' : ''}${counted}`,
    ...faults.map(({ code, file, message }) => `  ${code}  ${visible(file ?? '')}  ${visible(message)}`),
  ];
}

/** Throws when no server answers; one that is away is named. */
async function ofEachServer<T>(cli: Cli, session: Session, ask: (client: UserClient) => Promise<T>): Promise<T[]> {
  const { servers, token, client, authorities: ca } = session;
  if (servers.all.length < 2) return [await attempting('read the audit log', () => ask(client))];
  const send = ca === undefined ? cli.fetch : new TlsFetch(() => ({ ca })).fetch;
  const answers: T[] = [];
  let failure: unknown;
  for (const url of servers.all) {
    const one = createUserClient({ fetch: send, url, ...(token === undefined ? {} : { token }) });
    try {
      answers.push(await ask(one));
    } catch (error) {
      failure = error;
      cli.stderr.write(`berth: ${visible(url)} was not asked: ${visible(describeError(error))}\n`);
    }
  }
  if (answers.length === 0) throw failure;
  return answers;
}

const columns: readonly Column<AuditRecord>[] = [
  { header: 'TIME', value: ({ time }) => time },
  { header: 'WHO', value: ({ who, user }) => user ?? who ?? '-' },
  { header: 'FROM', value: ({ address, face }) => address ?? face },
  { header: 'VERB', value: ({ verb }) => verb },
  { header: 'OBJECT', value: (record) => [record.kind, record.project, record.object].filter(Boolean).join('/') },
  { header: 'OUTCOME', value: ({ outcome, reason, count }) => [outcome, reason, count].filter(Boolean).join(' ') },
  { header: 'REVISION', value: ({ revision }) => (revision === undefined ? '' : String(revision)), right: true },
];
