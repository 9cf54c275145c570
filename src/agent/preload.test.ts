import { describe, expect, it } from 'vitest';
import type { HostImage } from '../api/resources/host.ts';
import { type ImageSpec, imageKey } from '../api/resources/image.ts';
import { sleep } from '../base/clock.ts';
import { type Logger, silentLogger } from '../base/log.ts';
import { createManualClock, type ManualClock } from '../base/manual-clock.ts';
import type { ImageProgress } from './images/image-cache.ts';
import { createPreloader } from './preload.ts';

const image = (name: string, change: Partial<ImageSpec> = {}): { metadata: object; spec: ImageSpec } => ({
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

interface Trial {
  /** What the control plane answers, round by round; the last one for ever. */
  readonly rounds: readonly (() => unknown)[];
  /** Fetches one image, or throws. */
  readonly fetch?: (name: string, spec: ImageSpec, report: (progress: ImageProgress) => void) => void | Promise<void>;
  readonly here?: () => HostImage[];
  readonly clock?: ManualClock;
  readonly log?: Logger;
}

/** A preloader at work, and what it asked its cache for, with the minute. */
function preloading({ rounds, fetch, here, log, clock = createManualClock() }: Trial) {
  const asked: string[] = [];
  const minutes = new Map<string, number[]>();
  const startMs = clock.monotonicMs();
  let round = 0;
  const preloader = createPreloader({
    listImages: async () => (rounds[round++] ?? rounds.at(-1))?.(),
    cache: {
      async ensure(name, spec, { onProgress }) {
        asked.push(name);
        const atMinute = (clock.monotonicMs() - startMs) / 60_000;
        minutes.set(name, [...(minutes.get(name) ?? []), atMinute]);
        await fetch?.(name, spec, onProgress ?? (() => {}));
        return { path: '/a', format: 'qcow2', digest: `sha256:of ${spec.source}`, virtualSizeBytes: 1 };
      },
      list: async () => here?.() ?? [],
    },
    hostName: 'lab-1',
    architecture: 'amd64',
    drivers: ['qemu'],
    clock,
    log: log ?? silentLogger,
  });
  const stop = new AbortController();
  const running = preloader.run(stop.signal);
  return {
    preloader,
    asked,
    minutes,
    pass: (ms: number) => clock.advanceSettled(ms, turn),
    async end() {
      stop.abort();
      await running;
    },
  };
}

async function preloaded(rounds: readonly (() => unknown)[], broken: readonly string[] = []): Promise<string[]> {
  const fetch = (name: string): void => {
    if (broken.includes(name)) throw new Error('no such image');
  };
  const { asked, pass, end } = preloading({ rounds, fetch });
  await pass(60_000 * rounds.length - 1);
  await end();
  return asked;
}

const refuse = (): never => {
  throw new Error(`no such image ${'x'.repeat(600)}`);
};

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

  it('asks ever more rarely for an image that cannot be had, down to once an hour, and says so each time', async () => {
    const warnings: string[] = [];
    const log: Logger = { ...silentLogger, warn: (text) => warnings.push(text) };
    const { minutes, pass, end } = preloading({ rounds: [() => ({ items: [image('a')] })], fetch: refuse, log });
    await pass(250 * 60_000);
    expect(minutes.get('a')).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    expect(warnings).toHaveLength(10);
    await end();
  });

  it('tries at once what has changed since it could not be had', async () => {
    const at = (revision: number, source: string) => ({
      items: [{ ...image('a', { source }), metadata: { name: 'a', revision } }],
    });
    const [bad, good] = ['https://example.org/bad', 'https://example.org/good'];
    const rounds = [1, 2, 3, 4, 5].map(() => () => at(1, bad));
    const fetch = (_name: string, { source }: ImageSpec): void => (source === bad ? refuse() : undefined);
    const { minutes, pass, end } = preloading({ rounds: [...rounds, () => at(2, good)], fetch });
    await pass(6 * 60_000);
    expect(minutes.get('a')).toEqual([0, 1, 3, 5, 6]);
    await end();
  });

  it('does not wait for a slow server before it fetches from others, in this round and later ones', async () => {
    const slow = Promise.withResolvers<void>();
    const at = (name: string, host: string) => image(name, { source: `https://${host}/${name}` });
    const items = [at('slow', 'slow.example'), at('behind', 'slow.example'), at('quick', 'quick.example')];
    const trial = preloading({
      rounds: [() => ({ items }), () => ({ items: [...items, at('new', 'new.example')] })],
      fetch: (name) => (name === 'slow' ? slow.promise : undefined),
    });
    await trial.pass(1000);
    expect(trial.asked).toEqual(['slow', 'quick']);
    await trial.pass(60_000);
    expect(trial.asked).toEqual(['slow', 'quick', 'quick', 'new']);
    slow.resolve();
    await trial.pass(1);
    expect(trial.asked).toContain('behind');
    await trial.end();
  });

  it('tells what a host has, of which source it is, and what could not be had', async () => {
    const [a, b] = [image('a'), image('b', { source: 'https://example.org/b' })];
    const old = { name: 'b', digest: 'sha256:of an earlier source', sizeBytes: 2 };
    const had = { name: 'a', digest: `sha256:of ${a.spec.source}`, sizeBytes: 1 };
    const trial = preloading({
      rounds: [() => ({ items: [a, b] }), () => ({ items: [a] })],
      fetch: (name) => (name === 'b' ? refuse() : undefined),
      here: () => [had, old],
    });
    await trial.pass(1000);
    const [first, second, third] = await trial.preloader.images();
    expect([first, second]).toEqual([{ ...had, key: imageKey(a.spec) }, old]);
    expect(third).toMatchObject({ name: 'b', digest: '', sizeBytes: 0, key: imageKey(b.spec) });
    expect(third?.problem).toMatch(/^no such image x{498}$/);
    await trial.pass(60_000);
    expect(await trial.preloader.images()).toEqual([{ ...had, key: imageKey(a.spec) }, old]); // b is wanted no more
    await trial.end();
  });

  it('logs how far a long download is, every five seconds at most', async () => {
    const clock = createManualClock();
    const said: unknown[] = [];
    const log: Logger = { ...silentLogger, info: (_text, fields) => said.push(fields?.['doneBytes']) };
    const fetch = async (_name: string, _spec: ImageSpec, report: (progress: ImageProgress) => void): Promise<void> => {
      for (let second = 1; second <= 12; second++) {
        await sleep(clock, 1000);
        report({ stage: 'downloading', doneBytes: second, totalBytes: 100 });
      }
    };
    const { pass, end } = preloading({ rounds: [() => ({ items: [image('a')] })], fetch, clock, log });
    await pass(15_000);
    expect(said).toEqual([5, 10]);
    await end();
  });
});

it('fetches what its host or pool is named for, and has the cache keep that and what is pinned', async () => {
  const kept: string[][] = [];
  const asked: string[] = [];
  const clock = createManualClock();
  const listed = {
    pool: 'gpu',
    items: [
      image('everywhere'),
      image('here', { preload: false, prefetch: { hosts: ['lab-1'], pools: [] } }),
      image('pool', { preload: false, prefetch: { hosts: [], pools: ['gpu'] } }),
      image('elsewhere', { preload: false, prefetch: { hosts: ['lab-2'], pools: ['cpu'] } }),
      image('pinned', { preload: false, pinned: true, source: 'https://example.org/pinned' }),
      image('other', { preload: true, architecture: 'arm64' }),
    ],
  };
  const preloader = createPreloader({
    listImages: async () => listed,
    cache: {
      async ensure(name) {
        asked.push(name);
        return { path: '/a', format: 'qcow2', digest: 'sha256:a', virtualSizeBytes: 1 };
      },
      list: async () => [],
      async clean(wishes) {
        kept.push(wishes.kept.map(({ source }) => source));
      },
    },
    hostName: 'lab-1',
    architecture: 'amd64',
    drivers: ['qemu'],
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = preloader.run(stop.signal);
  await clock.advanceSettled(1, turn);
  stop.abort();
  await running;
  expect(asked).toEqual(['everywhere', 'here', 'pool']);
  expect(kept).toEqual([
    [...Array.from({ length: 3 }, () => 'https://example.org/a.qcow2'), 'https://example.org/pinned'],
  ]);
});
