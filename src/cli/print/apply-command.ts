// The command that carries out a plan: the one that showed it, with the plan's hash. It repeats the options that were given, those
// for all commands too: another project or context would be asked for another plan.

import type { Command } from 'commander';
import { shellWord } from './shell-word.ts';

/** `words`: the arguments; default: those that `called` was given. */
export function applyCommand(called: Command, hash: string, words: readonly string[] = called.args): string {
  const path = pathOf(called);
  const options = path.toReversed().flatMap(givenOptions);
  return [...path.map((command) => command.name()), ...words, ...options, '--apply', hash].map(shellWord).join(' ');
}

/** Options that say what to do with a plan; a plan does not depend on them. */
const ofVerbs: ReadonlySet<string> = new Set(['apply', 'dryRun', 'output', 'timeout', 'wait', 'watch', 'yes']);

function pathOf(command: Command): Command[] {
  return [...(command.parent === null ? [] : pathOf(command.parent)), command];
}

function givenOptions(command: Command): string[] {
  return command.options.flatMap((option) => {
    const { long } = option;
    const name = option.attributeName();
    if (!long || ofVerbs.has(name) || command.getOptionValueSource(name) !== 'cli') return [];
    const value: unknown = command.getOptionValue(name);
    if (typeof value === 'boolean') return value === option.negate ? [] : [long];
    const values = Array.isArray(value) ? value : [value];
    return values.flatMap((each) => [long, String(each)]);
  });
}
