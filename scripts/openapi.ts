// `npm run openapi`: writes docs/openapi.json from the registry of routes. With --check it only compares, and fails when the
// checked-in document says something else than the code.

import { readFileSync, writeFileSync } from 'node:fs';
import { openApiDocument } from '../src/api/openapi.ts';

const file = new URL('../docs/openapi.json', import.meta.url);
const generated = `${inFewLines(JSON.stringify(openApiDocument(), null, 2))}\n`;

if (!process.argv.includes('--check')) writeFileSync(file, generated);
else if (readChecked() !== generated) {
  console.error(`docs/openapi.json differs from the code, first at line ${firstDifference(readChecked(), generated)}`);
  process.exitCode = 1;
}

/** A list of words, and a lone reference, on one line. */
function inFewLines(text: string): string {
  const word = '"(?:[^"\\\\]|\\\\.)*"';
  const short = new RegExp(`\\[\\n *${word}(?:,\\n *${word})*\\n *\\]|\\{\\n *"\\$ref": ${word}\\n *\\}`, 'g');
  return text.replace(short, (found) => found.replace(/\n */g, ' '));
}

function readChecked(): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // not written yet: it differs from line 1
  }
}

function firstDifference(checked: string, current: string): number {
  const lines = checked.split('\n');
  return current.split('\n').findIndex((line, index) => line !== lines[index]) + 1 || lines.length;
}
