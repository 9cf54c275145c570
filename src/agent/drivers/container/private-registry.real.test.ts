// The real podman pulls from a real registry that asks for a password.

import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { createSharedWork } from '../../../base/concurrency/shared-work.ts';
import { type Credential, guestCredentialFor } from '../../images/credentials/image-credentials.ts';
import { startPrivateRegistry } from '../../images/credentials/test-private-registry.ts';
import { digestOf, startRegistry, whyNoRegistry } from '../../images/fetch/test-registry.ts';
import { testImageSpec } from '../../images/test-images.ts';
import type { PullLine } from './engine-answers.ts';
import { pullImage } from './pull.ts';
import { startPodman, whyNoPodman } from './test-podman.ts';
import { tarOf } from './test-tar.ts';

const why = whyNoPodman() ?? whyNoRegistry();
const password = 'planted-hunter22';

describe.skipIf(why !== undefined)(`podman${why === undefined ? '' : ` (${why})`}`, () => {
  it.each(['basic', 'bearer'] as const)('pulls with the credential of the prefix only (%s)', async (kind) => {
    const registry = await startRegistry();
    const door = await startPrivateRegistry({ behind: registry.address, kind, username: 'robot', password });
    const { engine, stop } = await startPodman({ insecureRegistry: door.address });
    try {
      const layer = tarOf([{ path: 'busybox', data: await readFile('/usr/bin/busybox'), executable: true }]);
      const rootfs = { type: 'layers', diff_ids: [digestOf(layer)] };
      const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', config: {}, rootfs }));
      await registry.pushBlob('team/app', layer);
      await registry.pushBlob('team/app', config);
      await registry.pushManifest('team/app', '1', {
        config: {
          mediaType: 'application/vnd.oci.image.config.v1+json',
          digest: digestOf(config),
          size: config.length,
        },
        layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digestOf(layer), size: layer.length }],
      });
      const image = testImageSpec(`docker://${door.address}/team/app:1`, { format: 'container', nocloud: false });
      const pull = (prefix: string, secret: string) => {
        const own = { project: 'web', credentials: [{ prefix, username: 'robot', secret }] };
        const credentialFor = (source: string): Promise<Credential | undefined> =>
          Promise.resolve(guestCredentialFor(own, source));
        const parts = { engine, pulls: createSharedWork<PullLine, void>(), credentialFor };
        const call = { signal: new AbortController().signal, onProgress: () => {} };
        return pullImage(parts, { name: 'main', imageName: 'app', image, env: {} }, call);
      };
      await expect(pull(`${door.address}/other`, password)).rejects.toMatchObject({ code: 'ImageUnavailable' });
      expect(door.withPassword()).toBe(0);
      const failure = await pull(`${door.address}/team`, 'planted-wrong').then(String, String);
      expect(failure).toContain('cannot pull image "app"');
      expect(failure).not.toContain('planted-wrong');
      expect((await pull(`${door.address}/team`, password)).digest).toMatch(/^sha256:/);
      expect(door.withPassword()).toBeGreaterThan(0);
    } finally {
      await stop();
      await door.stop();
      await registry.stop();
    }
  });

  it('pulls a tag that has moved only where the image says so', async () => {
    const registry = await startRegistry();
    const { engine, stop } = await startPodman({ insecureRegistry: registry.address });
    let ended: Promise<void> | undefined;
    const endRegistry = (): Promise<void> => (ended ??= registry.stop());
    try {
      const layer = tarOf([{ path: 'busybox', data: await readFile('/usr/bin/busybox'), executable: true }]);
      await registry.pushBlob('app', layer);
      const push = async (label: string): Promise<void> => {
        const rootfs = { type: 'layers', diff_ids: [digestOf(layer)] };
        const config = Buffer.from(
          JSON.stringify({ architecture: 'amd64', os: 'linux', config: { Labels: { label } }, rootfs }),
        );
        await registry.pushBlob('app', config);
        await registry.pushManifest('app', 'latest', {
          config: {
            mediaType: 'application/vnd.oci.image.config.v1+json',
            digest: digestOf(config),
            size: config.length,
          },
          layers: [
            { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digestOf(layer), size: layer.length },
          ],
        });
      };
      const pull = async (pullPolicy: 'IfNotPresent' | 'Always'): Promise<string> => {
        const source = `docker://${registry.address}/app:latest`;
        const image = testImageSpec(source, { format: 'container', nocloud: false, pullPolicy });
        const credentialFor = (): Promise<undefined> => Promise.resolve(undefined);
        const parts = { engine, pulls: createSharedWork<PullLine, void>(), credentialFor };
        const call = { signal: new AbortController().signal, onProgress: () => {} };
        return (await pullImage(parts, { name: 'main', imageName: 'app', image, env: {} }, call)).id;
      };
      await push('old');
      const old = await pull('IfNotPresent');
      await push('new');
      expect(await pull('IfNotPresent')).toBe(old);
      const now = await pull('Always');
      expect(now).not.toBe(old);
      await endRegistry();
      await expect(pull('Always')).rejects.toMatchObject({ code: 'ImageUnavailable' });
      expect(await pull('IfNotPresent')).toBe(now);
    } finally {
      await stop();
      await endRegistry();
    }
  });
});
