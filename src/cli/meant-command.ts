// Suggests a command for an unknown word. It suggests a destructive command only for a misspelling of that command.

import { nearest } from '../api/nearest.ts';

/** Destructive commands. */
const careful: readonly string[] = ['rm', 'stop', 'restart', 'restore', 'suspend'];

/** Names used by other tools. */
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

/**
 * The same letters in another order, one of them doubled, or, in a long name, one missing: `stpo`, `restrat`, `rmm`,
 * `susped`.
 */
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
