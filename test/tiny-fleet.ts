// A fleet of one server and one host with QEMU, which knows the tiny image, for the tests of a suite.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type Fleet, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

/** Set once the tests of the suite begin. */
export class TinyFleet {
  fleet!: Fleet;
  /** Removed at the end. */
  directory!: string;
}

/** To be called in a suite: instances are removed after its last test. */
export function tinyFleet(): TinyFleet {
  const at = new TinyFleet();
  beforeAll(async () => {
    const tiny = await tinyImage();
    at.directory = await mkdtemp(join(tmpdir(), 'berth-tiny-'));
    at.fleet = await startFleet(at.directory);
    await at.fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
  });
  afterAll(async () => {
    await at.fleet.removeAll();
    await at.fleet.stop();
    await rm(at.directory, { recursive: true, force: true });
  });
  return at;
}
