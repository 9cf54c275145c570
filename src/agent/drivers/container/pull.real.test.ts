// Pulls from a private registry: a real engine, and a real registry that asks for a name and password.

import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PrivateRegistry, startPrivateRegistry } from '../../images/credentials/test-private-registry.ts';
import { digestOf, startRegistry, type TestRegistry, whyNoRegistry } from '../../images/fetch/test-registry.ts';
import { startPodman, type TestPodman, whyNoPodman } from './test-podman.ts';

const [username, password] = ['robot', 'se:cret pass'];

const none = whyNoPodman() ?? whyNoRegistry();

describe.skipIf(none !== undefined)(`a private registry${none === undefined ? '' : ` (${none})`}`, () => {
  let registry: TestRegistry;
  let door: PrivateRegistry;
  let podman: TestPodman;
  beforeAll(async () => {
    registry = await startRegistry();
    door = await startPrivateRegistry({ behind: registry.address, kind: 'basic', username, password });
    podman = await startPodman({ insecureRegistry: door.address });
  });
  afterAll(async () => {
    await podman?.stop();
    await door?.stop();
    await registry?.stop();
  });

  it('gives its image to an engine that is told name and password, and to no other', async () => {
    const reference = `${door.address}/team/app:1`;
    await pushEmptyImage(registry, 'team/app');
    const call = { signal: new AbortController().signal, onLine: () => {} };
    await expect(podman.engine.pull(reference, call)).rejects.toThrow(/auth/i);
    await expect(podman.engine.pull(reference, { ...call, credential: { username, secret: 'wrong' } })).rejects.toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('wrong') }),
    );
    await podman.engine.pull(reference, { ...call, credential: { username, secret: password } });
    expect(await podman.engine.image(reference)).not.toBeNull();
  });
});

/** An image without files. */
async function pushEmptyImage(registry: TestRegistry, name: string): Promise<void> {
  const tar = Buffer.alloc(10_240);
  const layer = gzipSync(tar);
  const config = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    }),
  );
  await registry.pushBlob(name, config);
  await registry.pushBlob(name, layer);
  const prefix = 'application/vnd.oci.image';
  await registry.pushManifest(name, '1', {
    config: { mediaType: `${prefix}.config.v1+json`, digest: digestOf(config), size: config.length },
    layers: [{ mediaType: `${prefix}.layer.v1.tar+gzip`, digest: digestOf(layer), size: layer.length }],
  });
}
