// Messages for errors of the operating system about a file that the user named. It touches no file.

import { usageError } from '../exit-codes.ts';

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ELOOP: 'its symbolic links form a loop',
  ENOTDIR: 'a part of the path is not a directory',
  ENOSPC: 'no space is left on the device',
  EROFS: 'the file system is read-only',
};

/** `cannot <attempt>: there is no such file`, as a `CommandError`; another error unchanged. */
export function fileFailure(error: unknown, attempt: string): unknown {
  const reason = fileReason(error);
  return reason === undefined ? error : usageError(`cannot ${attempt}: ${reason}`);
}

/** Like `fileFailure`, for a file to be created: then it is the directory that is missing. */
export function writeFailure(error: unknown, attempt: string): unknown {
  return codeOf(error) === 'ENOENT'
    ? usageError(`cannot ${attempt}: there is no such directory`)
    : fileFailure(error, attempt);
}

/** Undefined: not an error of the operating system. */
export function fileReason(error: unknown): string | undefined {
  const code = codeOf(error);
  return code === undefined ? undefined : (reasons[code] ?? code);
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}
