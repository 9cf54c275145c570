// The image map that `berth server` takes when none was named: the shipped example, where somebody stands in a checkout of Berth.
// It looks in no other place.

import { access } from 'node:fs/promises';
import { join } from 'node:path';

export const defaultImageMap = 'examples/orchestrator-image-map.yaml';

/** Its path; undefined when there is none in `directory`. */
export async function imageMapIn(directory: string): Promise<string | undefined> {
  const path = join(directory, defaultImageMap);
  try {
    await access(path);
    return path;
  } catch {
    return undefined; // nobody asked for it, so what cannot be reached is not missed
  }
}
