// The exit codes of the command line, in addition to those of the API's errors (src/api/errors.ts), and the output for
// failures.

import { ApiError, type ErrorCode, errorCodes } from '../api/errors.ts';
import { describeError } from '../base/log.ts';
import { visible } from './print/terminal.ts';

export const exitCodes = {
  ok: 0,
  internal: 1,
  usage: 2,
  /** The awaited result is bad: the instance failed, exited or was deleted. */
  badOutcome: 7,
  /** `--timeout` expired. */
  timedOut: 8,
  /** Of `berth job run`, which else ends with the exit code of the job's program; 124 and 125 as timeout(1) and Docker have them. */
  jobCancelled: 123,
  jobTimedOut: 124,
  jobInfrastructure: 125,
  interrupted: 130,
} as const;

/** Ends a command. `message` says what was attempted and why it did not work; `advice` what the user can do. */
export class CommandError extends Error {
  override name = 'CommandError';
  readonly exitCode: number;
  readonly advice: string | undefined;
  constructor(exitCode: number, message: string, options: { advice?: string | undefined; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = exitCode;
    this.advice = options.advice;
  }
}

/** Ctrl-C while watching: no message. */
export class Interrupted extends Error {
  override name = 'Interrupted';
}

/** A program that ran for the user ended with this code, which becomes the exit code, without a message. */
export class CommandExit extends Error {
  override name = 'CommandExit';
  readonly exitCode: number;
  constructor(exitCode: number) {
    super(`it ended with code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

export function usageError(message: string, advice?: string): CommandError {
  return new CommandError(exitCodes.usage, message, { advice });
}

/**
 * Runs `work`; an API error is reported as `cannot <attempt>: <why>`. `advice` adds to, or replaces, the advice by
 * code.
 */
export async function attempting<T>(
  attempt: string,
  work: () => Promise<T>,
  advice: Partial<Record<ErrorCode, string | ((error: ApiError) => string)>> = {},
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const place = error.field === undefined || error.message.includes(error.field) ? '' : ` (${error.field})`;
    const known = advice[error.code] ?? adviceOf(error);
    const told = typeof known === 'function' ? known(error) : known;
    throw new CommandError(errorCodes[error.code].exitCode, `cannot ${attempt}: ${error.message}${place}`, {
      advice: told !== undefined && error.message.includes(told) ? undefined : told, // already part of the message
      cause: error,
    });
  }
}

const adviceByCode: Partial<Record<ErrorCode, string>> = {
  Unauthenticated:
    'log in with "berth login", set BERTH_TOKEN, or choose a context with a valid token: berth context ls',
  Forbidden: 'use a token with this permission: BERTH_TOKEN, or another context (berth context ls)',
  Unavailable: 'is the server running? "berth dev" starts one here; "berth context ls" shows the ones you know',
  TooManyRequests: 'wait a moment and try again',
  RevisionMismatch: 'it was changed at the same time: try again',
  StoreFull: "free space on the server's disk",
};

function adviceOf({ code, field, cause }: ApiError): string | undefined {
  // When a single field is forbidden, another token does not help.
  if (code === 'Forbidden' && field !== undefined) return undefined;
  if (code === 'Unavailable' && cause === undefined)
    return 'the server is running: try again; if this persists, its log and GET /readyz say why';
  return adviceByCode[code];
}

/** Whether no server responded at all. An error sent by a server has no cause. */
export function isUnanswered(error: unknown): boolean {
  const refusal = error instanceof CommandError ? error.cause : error;
  return refusal instanceof ApiError && refusal.code === 'Unavailable' && refusal.cause !== undefined;
}

/**
 * The output of a failed command on standard error, and its exit code. `inWords` translates API messages into the
 * command's terms.
 */
export function failureOf(
  error: unknown,
  inWords: (said: string) => string = (said) => said,
): { readonly text: string; readonly exitCode: number } {
  if (error instanceof CommandExit) return { text: '', exitCode: error.exitCode };
  if (error instanceof Interrupted) return { text: '', exitCode: exitCodes.interrupted };
  const told = error instanceof ApiError || (error instanceof CommandError && error.cause instanceof ApiError);
  const { message, advice, exitCode } =
    error instanceof CommandError
      ? error
      : error instanceof ApiError
        ? { message: error.message, advice: adviceOf(error), exitCode: errorCodes[error.code].exitCode }
        : { message: describeError(error), advice: undefined, exitCode: exitCodes.internal };
  const text = told ? inWords(message) : message;
  return { text: `berth: ${visible(text, '\n')}\n${advice ? `  ${visible(advice, '\n')}\n` : ''}`, exitCode };
}
