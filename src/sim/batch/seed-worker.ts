// A process that runs seeds for another: an order a line on its standard input, a result a line on its standard output, one at a time.
// It ends with its input, so that none outlives the one who gives the orders.

import { createInterface } from 'node:readline';
import { system } from '../../base/system.ts';
import { type SimOptions, simulate } from '../simulate.ts';

/** What the other one asks for. */
export interface Order extends Omit<SimOptions, 'trace'> {
  /** This many of the last lines of what happened; default: none. */
  readonly traceLines?: number;
}

system.terminationSignal(); // Ctrl-C reaches every process of the terminal; it is for the one who gives the orders
for await (const line of createInterface({ input: system.stdin })) {
  const { traceLines = 0, ...order } = JSON.parse(line) as Order; // the codec: seed-pool.ts writes so
  const result = await simulate({ ...order, trace: traceLines > 0 });
  const trace = traceLines > 0 ? result.trace.slice(-traceLines) : [];
  system.stdout.write(`${JSON.stringify({ ...result, trace })}\n`);
}
system.exit(0);
