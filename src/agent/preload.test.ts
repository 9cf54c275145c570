import { describe, expect, it } from 'vitest';
import type { ImageSpec } from '../api/agent-protocol.ts';
import { silentLogger } from '../base/log.ts';
import { createManualClock } from '../base/manual-clock.ts';
import { preloadImages } from './preload.ts';

const image = (name: string, change: Partial<ImageSpec> = {}) => ({
  kind: 'image',
  metadata: { name },
  spec: {
    source: 'https://example.org/a.qcow2',
    decompress: 'none',
    format: 'qcow2',
    nocloud: true,
    architecture: 'amd64',
    aliases: [],
    preload: true,
    defaults: {},
    ...change,
  },
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function preloaded(rounds: readonly (() => unknown)[], broken: readonly string[] = []): Promise<string[]> {
  const clock = createManualClock();
  const asked: string[] = [];
  const stop = new AbortController();
  let round = 0;
  const preloading = preloadImages(
    {
      listImages: async () => rounds[round++]?.() ?? { items: [] },
      cache: {
        async ensure(name) {
          asked.push(name);
          if (broken.includes(name)) throw new Error('no such image');
          return { path: '/a', format: 'qcow2', digest: 'sha256:0', virtualSizeBytes: 1 };
        },
        list: async () => [],
      },
      architecture: 'amd64',
      drivers: ['qemu'],
      clock,
      log: silentLogger,
    },
    stop.signal,
  );
  await clock.advanceSettled(60_000 * rounds.length - 1, turn);
  stop.abort();
  await preloading;
  return asked;
}

describe('preloading', () => {
  it('fetches what is to be on every fitting host, and nothing else', async () => {
    const items = [
      image('wanted'),
      image('not-asked-for', { preload: false }),
      image('for-another-processor', { architecture: 'arm64' }),
      image('for-another-driver', { backend: 'zones' }),
      image('for-this-driver', { backend: 'qemu' }),
    ];
    expect(await preloaded([() => ({ items })])).toEqual(['wanted', 'for-this-driver']);
  });

  it('goes on after an image that cannot be had, and tries that one again', async () => {
    const items = () => ({ items: [image('broken'), image('whole')] });
    expect(await preloaded([items, items], ['broken'])).toEqual(['broken', 'whole', 'broken', 'whole']);
  });

  it('goes on after a control plane that is away or talks nonsense', async () => {
    const away = (): never => {
      throw new Error('no answer');
    };
    const rounds = [
      away,
      () => 'what?',
      () => ({ items: [null, { metadata: {} }] }),
      () => ({ items: [image('wanted')] }),
    ];
    expect(await preloaded(rounds)).toEqual(['wanted']);
  });
});
