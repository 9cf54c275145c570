// `--accelerator` of the commands that run an agent of their own. Without the flag the agent's environment variable
// applies.

import { type AcceleratorSetting, acceleratorSettings } from '../agent/drivers/accelerator-setting.ts';
import type { Cli } from '../cli/cli.ts';
import { usageError } from '../cli/exit-codes.ts';

const variable = 'BERTH_AGENT_ACCELERATOR';
export const acceleratorHelp = `accelerator of virtual machines: ${acceleratorSettings.join(', ')} (${variable}); default: auto`;

/** Throws `CommandError` that names the flag or the variable. */
export function acceleratorFrom(
  { environment }: Pick<Cli, 'environment'>,
  flag: string | undefined,
): AcceleratorSetting {
  const given = flag ?? (environment[variable] || 'auto');
  const known = acceleratorSettings.find((setting) => setting === given);
  if (known !== undefined) return known;
  throw usageError(
    `${flag === undefined ? variable : '--accelerator'} cannot be "${given}"`,
    `choose one of: ${acceleratorSettings.join(', ')}`,
  );
}
