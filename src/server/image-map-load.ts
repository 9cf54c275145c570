// The image map at start: its images and sizes are made or brought up to date; what it does not name is left alone.

import { readFile } from 'node:fs/promises';
import type { Logger } from '../base/log.ts';
import { createFleetResource, replaceFleetResource } from '../core/operations/fleet-resource.ts';
import { keys } from '../core/state/keys.ts';
import { decideAndCommit, type Decider } from './decide.ts';
import { parseImageMap } from './image-map.ts';

/** Throws `ApiError` `InvalidRequest` with line and column when the file is not an image map. */
export async function loadImageMap(path: string, decider: Decider, log: Logger): Promise<void> {
  const map = parseImageMap(await readFile(path, 'utf8'));
  for (const { name, spec } of map.images) {
    const { decision } = await decideAndCommit(decider, (snapshot, ctx) => {
      const existing = snapshot.get('image', keys.image(name));
      const input = { project: '', name, labels: existing?.value.metadata.labels ?? {}, spec };
      return existing
        ? replaceFleetResource(snapshot, 'image', input, (head) => ({ kind: 'image', ...head, spec }))
        : createFleetResource(snapshot, 'image', input, (head) => ({ kind: 'image', ...head, spec }), ctx);
    });
    if (decision.changed) log.info('image from the image map', { image: name });
  }
  for (const { name, ...spec } of map.sizes) {
    await decideAndCommit(decider, (snapshot, ctx) => {
      const existing = snapshot.get('size', keys.size(name));
      const input = { project: '', name, labels: existing?.value.metadata.labels ?? {}, spec };
      return existing
        ? replaceFleetResource(snapshot, 'size', input, (head) => ({ kind: 'size', ...head, spec }))
        : createFleetResource(snapshot, 'size', input, (head) => ({ kind: 'size', ...head, spec }), ctx);
    });
  }
}
