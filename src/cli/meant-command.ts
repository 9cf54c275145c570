// Suggests a command for an unknown word. It suggests a destructive command only for a misspelling of that command.

import { nearest } from '../api/nearest.ts';

/** Destructive commands. */
const careful: readonly string[] = ['rm', 'stop', 'restart', 'restore', 'suspend'];

/** Names used by other tools, with the commands for the same; the first that exists is meant. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  attach: ['console'],
  cordon: ['pause'],
  create: ['run', 'create'],
  delete: ['rm'],
  deployment: ['workload'],
  describe: ['show'],
  destroy: ['rm'],
  flavor: ['size'],
  info: ['show'],
  inspect: ['show'],
  instance: ['ps'],
  instances: ['ps'],
  machine: ['host'],
  namespace: ['project'],
  node: ['host'],
  nodes: ['host'],
  pause: ['suspend'],
  quota: ['project'],
  reboot: ['restart'],
  remove: ['rm'],
  rollback: ['undo'],
  rollout: ['status'],
  shutdown: ['stop'],
  status: ['show'],
  template: ['image'],
  uncordon: ['resume'],
  unpause: ['resume'],
  user: ['token'],
  users: ['token'],
  vm: ['ps'],
  vms: ['ps'],
  worker: ['host'],
  workers: ['host'],
};

export function meantCommand(word: string, names: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const known = Object.hasOwn(elsewhere, lower) ? elsewhere[lower]?.find((name) => names.includes(name)) : undefined;
  if (known !== undefined) return known;
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
