// The default image map of `berth server`: the shipped example, when the current directory is a checkout of Berth. It
// looks nowhere else.

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
    return undefined; // optional, so an unreadable file is ignored
  }
}
