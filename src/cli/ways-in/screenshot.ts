// `berth screenshot NAME`: saves a guest's screen as PNG.

import { writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { writeFailure } from '../options/file-failure.ts';
import { openGuestLine } from './guest-line.ts';
import { png } from './png.ts';
import { lookAt } from './rfb.ts';
import { runningInstance } from './running-instance.ts';
import { openSession } from '../session.ts';

export function screenshotCommand(cli: Cli): Command {
  return new Command('screenshot')
    .description("Take a picture of an instance's screen")
    .argument('<instance>')
    .option('-o, --output <file>', 'file to write; - is standard output; default: NAME.png')
    .action(async (name: string, { output }: { readonly output?: string }, command: Command) => {
      const path = output ?? `${name}.png`;
      if (path === '-' && cli.stdout.isTTY)
        throw usageError('cannot write a picture to a terminal', 'write it to a file: --output FILE');
      const session = await openSession(cli, command);
      const attempt = `take a picture of instance "${name}"`;
      await runningInstance(session, { name, attempt, standing: true });
      const picture = await attempting(attempt, async () => {
        const line = await openGuestLine(session, { name, way: 'vnc' });
        try {
          return await lookAt(line);
        } finally {
          line.end();
        }
      });
      const bytes = png(picture);
      if (path === '-') return void cli.stdout.write(bytes);
      await writeFile(path, bytes).catch((error: unknown) => {
        throw writeFailure(error, `write the picture to ${path}`);
      });
      cli.stdout.write(`${path}: ${picture.width} x ${picture.height}\n`);
    });
}
