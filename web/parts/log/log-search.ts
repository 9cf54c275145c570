// Search in a log: the lines that contain a text, ignoring case and colours. Pure.

import { plainText, type RunLog } from './run-log.ts';

/** Indexes of the lines; `[]` for an empty text. */
export function linesWith({ lines }: RunLog, text: string): readonly number[] {
  const wanted = text.toLowerCase();
  if (wanted === '') return [];
  const found: number[] = [];
  for (const [index, line] of lines.entries()) if (plainText(line).toLowerCase().includes(wanted)) found.push(index);
  return found;
}

/** The lines of a link: `#L12`, `#L12-L20`; numbers from 1. */
export function linesOfHash(hash: string): { readonly from: number; readonly to: number } | undefined {
  const [, first, last] = /^#L(\d{1,9})(?:-L?(\d{1,9}))?$/.exec(hash) ?? [];
  if (first === undefined) return undefined;
  const ends = [Number(first), Number(last ?? first)];
  const from = Math.min(...ends);
  return from < 1 ? undefined : { from, to: Math.max(...ends) };
}

export function hashOfLines({ from, to }: { readonly from: number; readonly to: number }): string {
  return from === to ? `#L${from}` : `#L${from}-L${to}`;
}
