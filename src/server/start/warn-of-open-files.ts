// Warns of keys and tokens of a server that other users of its machine may read.

import { join } from 'node:path';
import type { Logger } from '../../base/log.ts';
import { adviceOnSecretFile } from '../../base/system.ts';
import type { ServerConfig } from '../config.ts';

/** Our own copies are written again for their owner alone; who read them before knows them. */
export async function warnOfOpenFiles({ tlsKey, dataDirectory, forges }: ServerConfig, log: Logger): Promise<void> {
  const own = ['secret', 'operator.token'].map((name) => join(dataDirectory, name));
  const foreign = [tlsKey, ...forges.flatMap(({ secretFile, tokenFile }) => [secretFile, tokenFile])];
  for (const path of [...foreign.filter((path) => path !== undefined), ...own]) {
    const advice = await adviceOnSecretFile(path);
    if (advice !== undefined) log.warn(advice, { path });
  }
}
