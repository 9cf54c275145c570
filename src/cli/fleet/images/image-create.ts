// `berth image create NAME --from INSTANCE`: creates an image from the current disk of an instance, which is not
// changed.

import { Command } from 'commander';
import { ApiError } from '../../../api/errors.ts';
import { linesOf, parseLine } from '../../../api/client/user-client.ts';
import { isRecord } from '../../../base/is-record.ts';
import type { Cli } from '../../cli.ts';
import { attempting } from '../../exit-codes.ts';
import { startProgress } from '../../print/progress.ts';
import { openSession } from '../../session.ts';
import { bytes } from '../../options/units.ts';
import { seeInstances } from '../../instances/instance-advice.ts';

export function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create an image from the disk of a stopped instance')
    .argument('<name>')
    .requiredOption('--from <instance>', 'its name or id')
    .action(async (name: string, { from }: { from: string }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const progress = startProgress(cli);
      progress.update(`${name}: its host copies the disk`);
      try {
        const sizeBytes = await attempting(
          `create image "${name}" from instance "${from}"`,
          async () => {
            const response = await client.request(`/v1/images/${encodeURIComponent(name)}/from-instance`, {
              method: 'POST',
              query: { instance: from, project },
              signal: cli.interruption(),
            });
            let done: unknown;
            for await (const line of linesOf(response)) done = parseLine(line);
            if (!isRecord(done) || done['type'] !== 'done')
              throw new ApiError(
                'Unavailable',
                'the connection to the server broke before the image was ready; check for it, then try again',
              );
            const { spec } = isRecord(done['image']) ? done['image'] : {};
            return isRecord(spec) ? Number(spec['sizeBytes']) : 0;
          },
          {
            Conflict: ({ details }) =>
              isRecord(details) && details['reason'] === 'NotStopped'
                ? `stop it first, if possible from inside the guest: berth stop ${from}`
                : '',
            NotFound: seeInstances,
          },
        );
        progress.end();
        cli.stdout.write(`image ${name} created from ${from} (${bytes(sizeBytes)})\n`);
      } finally {
        progress.end();
      }
    });
}
