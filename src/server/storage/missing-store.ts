// Refuses to begin an empty fleet where there was one: its database file is gone, most likely with the file system that it lies on.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../api/errors.ts';

/** What a server that has once started leaves in its data directory. */
const traces = ['secret', 'server-id'];

/** Throws `Conflict` for a SQLite store that is gone. Nothing was changed then. */
export function refuseMissingStore(
  storeUrl: string,
  { dataDirectory, newFleet }: { readonly dataDirectory: string; readonly newFleet: boolean },
): void {
  const [scheme, path = ''] = /^sqlite:(.*)$/.exec(storeUrl) ?? [];
  if (newFleet || scheme === undefined) return;
  // A write-ahead log alone is refused by the store, which knows what it means.
  if ([path, `${path}-wal`].some((file) => existsSync(file))) return;
  if (!traces.every((file) => existsSync(join(dataDirectory, file)))) return;
  throw new ApiError(
    'Conflict',
    `the store ${path} is gone, though a server has run with ${dataDirectory} before: mount its file system, or put a backup in its place with "berth restore FILE --store sqlite:${path}"; --new-fleet (newFleet: true) starts an empty fleet instead`,
  );
}
