// Which command an unknown word may have meant. It never offers one that ends something to who wanted to look: only for a slip in its very name.

import { nearest } from '../api/nearest.ts';

/** They end or overwrite something. */
const careful: readonly string[] = ['rm', 'stop', 'restart', 'restore', 'suspend'];

/** What other tools call it. */
const elsewhere: Readonly<Record<string, string>> = {
  create: 'run',
  delete: 'rm',
  describe: 'show',
  destroy: 'rm',
  inspect: 'show',
  pause: 'suspend',
  reboot: 'restart',
  remove: 'rm',
  shutdown: 'stop',
  status: 'show',
  unpause: 'resume',
};

export function meantCommand(word: string, names: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  if (Object.hasOwn(elsewhere, lower)) return elsewhere[lower];
  const harmless = nearest(
    word,
    names.filter((name) => !careful.includes(name)),
  );
  return careful.find((name) => names.includes(name) && sameLetters(lower, name)) ?? harmless;
}

/** The same letters in another order, one of them twice, or, of a long name, one of them not at all: `stpo`, `restrat`, `rmm`, `susped`. */
function sameLetters(word: string, name: string): boolean {
  const sorted = (text: string): string => Array.from(text).sort().join('');
  const doubled =
    word.length === name.length + 1 && Array.from(name).some((letter) => sorted(name + letter) === sorted(word));
  const missing =
    name.length > 6 &&
    word.length === name.length - 1 &&
    Array.from(name).some((_, i) => name.slice(0, i) + name.slice(i + 1) === word);
  return word[0] === name[0] && (doubled || missing || sorted(word) === sorted(name));
}
