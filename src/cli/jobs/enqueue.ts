// `berth enqueue`: sends a JobRequest, to the broker where one is named, else to the API.

import { Command } from 'commander';
import { isDecodableUrl } from '../../base/decodable-url.ts';
import { randomSecret } from '../../base/system.ts';
import { readTlsFiles, type TlsFile, TlsFileError, type TlsFiles } from '../../base/tls/tls-files.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { assertNoPassword } from '../options/broker-url.ts';
import { openSession } from '../session.ts';
import type { BrokerToUse, RequestToSend } from './publish-request.ts';

interface EnqueueFlags {
  readonly schemaVersion: string;
  readonly requestId?: string;
  readonly source: string;
  readonly repoUrl: string;
  readonly commitSha: string;
  readonly workflowPath?: string;
  readonly workflowJobId?: string;
  readonly runsOn?: string;
  readonly submittedAt?: string;
  readonly amqpUrl?: string;
  readonly amqpExchange?: string;
  readonly amqpRoutingKey?: string;
  readonly api?: true;
}

export function enqueueCommand(cli: Cli): Command {
  return new Command('enqueue')
    .description(
      'Request a job that runs a file of a repository: publishes a JobRequest to the broker of AMQP_URL, or sends it to the server when that is not set. Prints the request id',
    )
    .requiredOption('--repo-url <url>', 'http or https, without user name or password')
    .requiredOption('--commit-sha <hash>', 'the full hash of the commit')
    .option('--runs-on <label>', 'an alias or name of an image; default: the default label')
    .option('--workflow-path <path>', 'the file to run; default: .solstice/job.sh')
    .option('--workflow-job-id <id>', 'of the job in its workflow, for the requester')
    .option('--request-id <uuid>', 'the same id makes the same job; default: a new one')
    .option('--source <source>', 'github, forgejo or manual', 'manual')
    .option('--submitted-at <time>', 'as 2026-11-26T03:10:11Z; default: now')
    .option('--schema-version <version>', 'of the message', 'jobrequest.v1')
    .option('--amqp-url <url>', 'broker; a URL with a password belongs in AMQP_URL')
    .option('--amqp-exchange <name>', 'default: solstice.jobs (AMQP_EXCHANGE)')
    .option('--amqp-routing-key <key>', 'default: jobrequest.v1 (AMQP_ROUTING_KEY)')
    .option('--api', 'send it to the server, even if AMQP_URL is set')
    .action(async (flags: EnqueueFlags, command: Command) => {
      const request = requestOf(cli, flags);
      const broker = brokerOf(cli, flags);
      if (broker) {
        const { publishRequest } = await import('./publish-request.ts');
        await attempting('publish the request', () => publishRequest(request, broker), {
          Unavailable: 'see that AMQP_URL and AMQP_EXCHANGE are those of a server that runs, or send it with --api',
        });
      } else {
        const { client, project } = await openSession(cli, command);
        const job = await attempting('create the job', () => client.createJobRequest(request, { project }), {
          IdempotencyMismatch: 'leave --request-id out to have a new one',
        });
        if (cli.stderr.isTTY) cli.stderr.write(`accepted; follow it with: berth job logs -f ${job.metadata.name}\n`);
      }
      cli.stdout.write(`${request.request_id}\n`);
    });
}

function requestOf(cli: Cli, flags: EnqueueFlags): RequestToSend {
  return {
    schema_version: flags.schemaVersion,
    request_id: flags.requestId ?? newUuid(),
    source: flags.source,
    repo_url: flags.repoUrl,
    commit_sha: flags.commitSha,
    ...(flags.workflowPath === undefined ? {} : { workflow_path: flags.workflowPath }),
    ...(flags.workflowJobId === undefined ? {} : { workflow_job_id: flags.workflowJobId }),
    ...(flags.runsOn === undefined ? {} : { runs_on: flags.runsOn }),
    submitted_at: flags.submittedAt ?? new Date(cli.clock.nowMs()).toISOString(),
  };
}

function brokerOf({ environment }: Cli, flags: EnqueueFlags): BrokerToUse | undefined {
  if (flags.api && flags.amqpUrl !== undefined) throw usageError('--api and --amqp-url cannot both be given');
  if (flags.amqpUrl !== undefined) assertNoPassword(flags.amqpUrl);
  const url = flags.amqpUrl ?? (environment['AMQP_URL'] || undefined);
  if (url === undefined || flags.api) return undefined;
  if (!isDecodableUrl(url))
    throw usageError(
      'AMQP_URL is not a URL of the form amqp://USER:PASSWORD@HOST:PORT/VHOST',
      'a % in the password is written as %25',
    );
  const tls = url.startsWith('amqps:') ? tlsOf(environment) : undefined;
  return {
    url,
    ...(tls === undefined ? {} : { tls }),
    exchange: flags.amqpExchange ?? (environment['AMQP_EXCHANGE'] || 'solstice.jobs'),
    routingKey: flags.amqpRoutingKey ?? (environment['AMQP_ROUTING_KEY'] || 'jobrequest.v1'),
  };
}

/** As a server has them, which may have other variables of the same machine. */
function tlsOf(environment: Cli['environment']): TlsFiles {
  const file = (setting: string): TlsFile | undefined => {
    const path = environment[setting];
    return path ? { setting, path } : undefined;
  };
  const [cert, key] = [file('AMQP_CERTIFICATE'), file('AMQP_KEY')];
  if ((cert === undefined) !== (key === undefined)) throw usageError('AMQP_CERTIFICATE and AMQP_KEY go together');
  try {
    return readTlsFiles({ ca: file('AMQP_CA'), cert, key });
  } catch (error) {
    throw error instanceof TlsFileError ? usageError(error.message) : error;
  }
}

/** Version 4, variant 1 of RFC 9562: all other bits are random. */
function newUuid(): string {
  const bytes = randomSecret(16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
