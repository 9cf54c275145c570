// The last word of every end-to-end test: the fleet fits together.

import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../src/api/errors.ts';
import type { UserClient } from '../src/api/client/user-client.ts';

/** What is on its way may take a moment; what is left then is a fault, and so is a server that does not say. */
export async function expectConsistent(client: Pick<UserClient, 'verify'>, withinMs = 20_000): Promise<void> {
  const deadlineMs = Date.now() + withinMs;
  for (;;) {
    const report = await client.verify({ olderThanMs: 0 }).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 'Unavailable') return undefined;
      throw error;
    });
    if (report?.findings.length === 0) return;
    if (Date.now() > deadlineMs)
      throw new Error(
        report
          ? `the fleet does not fit together: ${JSON.stringify(report.findings, null, 1)}`
          : 'the server cannot be asked whether the fleet fits together',
      );
    await sleep(200);
  }
}
