// The programs that networks are made with: `ip`, `bridge`, `nft`, `dnsmasq`. Their refusals become errors that say what to do.

import type { Clock } from '../../base/clock.ts';
import { DriverError } from '../host/driver-error.ts';
import { runTool } from '../host/run-tool.ts';
import { type Command, type Link, readLinks } from './links.ts';

const timeoutMs = 20_000; // each takes milliseconds; this is for a host that swaps

const packageOf: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  bridge: 'iproute2',
  nft: 'nftables',
  dnsmasq: 'dnsmasq-base',
};

export interface NetworkTools {
  /** Throws `HypervisorFailed`. */
  run(program: string, words: readonly string[]): Promise<string>;
  runAll(commands: readonly Command[]): Promise<void>;
  links(): Promise<Link[]>;
}

export function networkTools(clock: Clock): NetworkTools {
  const run = async (program: string, words: readonly string[]): Promise<string> => {
    const result = await runTool(clock, { program, arguments: words, timeoutMs });
    if (result.ok) return result.output;
    const what = `cannot see to the guests' network`;
    if (result.reason === 'missing') {
      const name = packageOf[program] ?? program;
      throw new DriverError('HypervisorFailed', `${what}: ${program} is not installed; install the package ${name}`);
    }
    const hint = /not permitted|permission denied/i.test(result.output) ? '; the agent must run as root for it' : '';
    const said = result.output.slice(0, 500);
    throw new DriverError('HypervisorFailed', `${what}: "${[program, ...words].join(' ')}": ${said}${hint}`);
  };
  return {
    run,
    async runAll(commands) {
      for (const command of commands) await run(command.program, command.arguments);
    },
    links: async () => readLinks(await run('ip', ['-json', '-details', 'address', 'show'])),
  };
}
