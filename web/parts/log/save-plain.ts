// Saves a log as the browser saves a download: its text alone, without times and without commands to a terminal.

import { type LogLine, plainText } from './run-log.ts';

export function savePlain(lines: readonly LogLine[], name: string): void {
  const text = lines.map((line) => `${plainText(line)}\n`);
  const url = URL.createObjectURL(new Blob(text, { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
