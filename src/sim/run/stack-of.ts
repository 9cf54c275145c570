// The stack of an error in the message of a violation; it goes to developers only.

import { describeError } from '../../base/log.ts';

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : describeError(error);
}
