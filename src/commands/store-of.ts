// A store that a command opens itself, with its failures as error messages.

import { CommandError, exitCodes } from '../cli/exit-codes.ts';
import { errorCodes } from '../api/errors.ts';
import { BadBackup } from '../server/storage/backup.ts';
import { openStore } from '../store/open.ts';
import { type Store, StoreError, type StoreErrorCode } from '../store/store.ts';

interface OpenOptions {
  readonly mustExist?: boolean;
  readonly advice?: Advice;
}

/** Further advice about a failure, where the command knows more than the store. */
type Advice = Partial<Record<StoreErrorCode, string>>;

export async function openStoreOf(url: string, { advice, ...options }: OpenOptions = {}): Promise<Store> {
  if (url.startsWith('memory:'))
    throw new CommandError(exitCodes.usage, 'a store in memory is lost when this command ends; name another');
  return tellFailure('open the store', () => openStore(url, options), advice);
}

/** Advice for a server that cannot start because of its store. */
export const storeAdvice = {
  Unavailable: '"berth store check URL" says whether the store is closed, and why',
} as const;

/** Runs `work`; an error of the store or of a backup is reported as `cannot <attempt>: <why>`. */
export async function tellFailure<T>(attempt: string, work: () => Promise<T>, advice: Advice = {}): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof BadBackup)
      throw new CommandError(exitCodes.usage, `cannot ${attempt}: ${error.message}; nothing was changed`, {
        cause: error,
      });
    if (!(error instanceof StoreError)) throw error;
    throw new CommandError(exitCodeOf(error), `cannot ${attempt}: ${error.message}`, {
      advice: advice[error.code],
      cause: error,
    });
  }
}

function exitCodeOf({ code }: StoreError): number {
  switch (code) {
    case 'Invalid':
      return exitCodes.usage;
    case 'Full':
      return errorCodes.StoreFull.exitCode;
    case 'Unavailable':
    case 'Locked':
    case 'Closed':
      return errorCodes.Unavailable.exitCode;
    case 'Denied':
      return errorCodes.Forbidden.exitCode;
    case 'Corrupt':
      return errorCodes.Conflict.exitCode;
  }
}
