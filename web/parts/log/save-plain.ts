// Saves the text of a log: without times and without commands to a terminal.

import { saveFile } from '../save-file.ts';
import { type LogLine, plainText } from './run-log.ts';

export function savePlain(lines: readonly LogLine[], name: string): void {
  saveFile(
    lines.map((line) => `${plainText(line)}\n`),
    { name, type: 'text/plain' },
  );
}
