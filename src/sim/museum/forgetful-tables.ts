// Not bugs: the tables of bounded size that keep expensive results, made so small that they forget all the time. Nothing may
// hang on what they happen to remember, for that is the whole past of a process; runs must be the same to the last byte.

import type { Planted } from './plant.ts';

export const forgetfulTables: readonly Planted[] = [
  table('short-keys', 'core/scheduler/engine/short-keys.ts', 'const keptMax = 8_192;', 'const keptMax = 100;'),
  table('known-requests', 'core/scheduler/request.ts', 'const knownMax = 4096;', 'const knownMax = 2;'),
  table('shared-amounts', 'core/scheduler/request.ts', 'const amountsKeptMax = 16_384;', 'const amountsKeptMax = 2;'),
  table('domains', 'core/scheduler/neighbours/domains.ts', 'const keptMax = 128;', 'const keptMax = 2;'),
  table('held-of-one', 'core/state/held-of-one.ts', 'const rememberedMax = 100_000;', 'const rememberedMax = 3;'),
  table('share-parts', 'core/state/share-parts.ts', 'const rememberedMax = 20_000;', 'const rememberedMax = 5;'),
  table('watch-lines', 'server/http/watch/watch-lines.ts', 'const sharedMax = 256;', 'const sharedMax = 2;'),
];

function table(name: string, file: string, find: string, replace: string): Planted {
  return { name: `forgetful-${name}`, file, find, replace };
}
