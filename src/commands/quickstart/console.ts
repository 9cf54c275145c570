// Prints the end of a guest's console.

import { describeError } from '../../base/log.ts';
import type { Session } from '../../cli/session.ts';
import { visible } from '../../cli/print/terminal.ts';
import type { Teller } from './teller.ts';

const consoleBytesMax = 64 * 1024;

/** The end of the console, if available: an error here must not hide the failure that it explains. */
export async function tellConsole(
  tell: Teller,
  { client, project }: Session,
  name: string,
  title: string,
): Promise<void> {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const bytes of client.log(name, { project })) {
      text = (text + decoder.decode(bytes, { stream: true })).slice(-consoleBytesMax);
    }
  } catch (error) {
    tell.line(`  (no console: ${describeError(error)})`);
    return;
  }
  const lines = text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are of no use here
    .replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '')
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
  tell.line('');
  tell.line(`${title}:`);
  for (const line of lines.slice(-12)) tell.line(`  | ${visible(line)}`);
}
