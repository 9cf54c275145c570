// Invariant 6 as a watcher sees it: every change of its kind after the revision it began at, once and in order, up to each bookmark.

import type { Commit } from '../history.ts';

export const watchedKinds = ['instance', 'host', 'task', 'event'] as const;
export type WatchedKind = (typeof watchedKinds)[number];

export interface WatchedLine {
  readonly type: 'put' | 'delete' | 'bookmark';
  readonly revision: number;
  readonly name?: string;
}

interface Watched {
  readonly kind?: WatchedKind;
  /** The only one of which it is told. */
  readonly project?: string | undefined;
}

/** Holds one watch, begun after revision `after`, to `commits`; each call says what is wrong with a line. */
export function createWatchCheck(
  commits: readonly Commit[],
  after: number,
  { kind = 'instance', project }: Watched = {},
): (line: WatchedLine) => string | undefined {
  const expected = expectedLines(commits, after, { kind, project });
  let next = expected.next();
  return (line) => {
    // The history may have grown since it was last found at its end.
    if (next.value === undefined) next = expected.next();
    const { value } = next;
    if (line.type === 'bookmark') {
      return value !== undefined && value.revision <= line.revision
        ? `a bookmark of revision ${line.revision} came before ${value.type} of ${value.name} at ${value.revision}`
        : undefined;
    }
    if (value?.type !== line.type || value.revision !== line.revision || value.name !== line.name) {
      return `${line.type} of ${line.name} at ${line.revision} came in the place of ${
        value ? `${value.type} of ${value.name} at ${value.revision}` : 'nothing'
      }`;
    }
    next = expected.next();
    return undefined;
  };
}

/** Yields undefined while it has reached the end of the history. */
function* expectedLines(
  commits: readonly Commit[],
  after: number,
  { kind, project }: Watched,
): Generator<WatchedLine | undefined, never> {
  for (let revision = after + 1; ; revision++) {
    let commit = commits[revision - 1];
    while (commit === undefined) {
      yield undefined;
      commit = commits[revision - 1];
    }
    for (const { before, after: now } of commit.events) {
      const resource = now ?? before;
      if (resource === null || resource.kind !== kind || !('metadata' in resource)) continue;
      if (project !== undefined && resource.metadata.project !== project) continue;
      yield { type: now ? 'put' : 'delete', revision, name: resource.metadata.name };
    }
  }
}
