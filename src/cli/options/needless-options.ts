// Refuses options that a command would ignore beside another one: a user who gave them expects an effect.

import type { Command } from 'commander';
import { usageError } from '../exit-codes.ts';

/** `names` as in the properties of the flags; `beside` is the option that makes them mean nothing. Throws a usage error. */
export function refuseNeedless(command: Command, names: readonly string[], beside: string): void {
  for (const option of command.options) {
    const name = option.attributeName();
    if (!names.includes(name) || command.getOptionValueSource(name) !== 'cli') continue;
    throw usageError(`${option.long ?? option.flags} has no effect with ${beside}`, 'leave out one of the two');
  }
}
