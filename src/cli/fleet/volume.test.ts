import { describe, expect, it } from 'vitest';
import type { Volume } from '../../api/resources/volume.ts';
import { type Handler, runBerth, testInstance, testNowMs } from '../testing.ts';

function testVolume(spec: Partial<Volume['spec']> = {}, status: Partial<Volume['status']> = {}): Volume {
  return {
    kind: 'volume',
    schemaVersion: 1,
    metadata: {
      id: 'vol_00000000000000000000000001',
      name: 'data',
      project: 'default',
      revision: 7,
      generation: 2,
      labels: {},
      createdAtMs: testNowMs - 60_000,
    },
    spec: { sizeGiB: 10, snapshots: [], ...spec },
    status: {
      phase: 'Ready',
      host: 'h1',
      made: true,
      observedGeneration: 2,
      conditions: [{ type: 'Ready', status: 'True', reason: 'Made', message: 'it is there', sinceMs: 0 }],
      ...status,
    },
  };
}

/** Answers every request about the volume with it, and about the instance with that. */
function fleet(volume = testVolume(), instance = testInstance('web')): Handler {
  return ({ method, path }) => {
    if (path === '/v1/volumes/data') return { json: volume };
    if (path === '/v1/volumes') return { json: method === 'POST' ? volume : { items: [volume], revision: 7 } };
    return path === '/v1/instances/web' ? { json: instance } : undefined;
  };
}

const puts = (requests: Awaited<ReturnType<typeof runBerth>>['requests']) =>
  requests.flatMap(({ method, body }) => (method === 'PUT' ? [body] : []));

describe('berth volume', () => {
  it('makes one, of a size with its unit', async () => {
    const { stdout, requests } = await runBerth(['volume', 'create', 'data', '-s', '10GiB'], { handler: fleet() });
    expect(requests[0]?.body).toEqual({
      metadata: { name: 'data', project: 'default', labels: {} },
      spec: { sizeGiB: 10 },
    });
    expect(stdout).toBe('data created; attach it: berth run IMAGE --volume data\n');
  });

  const refused: readonly [string, readonly string[], RegExp][] = [
    ['no size', ['create', 'data'], /--size/],
    ['a size without unit', ['create', 'data', '-s', '10'], /--size cannot be "10"/],
    ['half a GiB', ['create', 'data', '-s', '512MiB'], /whole GiB/],
    ['a source without a snapshot', ['create', 'data', '-s', '1GiB', '--from', 'old'], /data@before/],
    ['waiting for what nobody makes', ['create', 'data', '-s', '1GiB', '--wait'], /--wait needs --host or --from/],
    ['a time-out without waiting', ['rm', 'data', '-t', '5s'], /--timeout needs --wait/],
    ['a snapshot that is not', ['snapshot', 'rm', 'data', 'x'], /has no snapshot "x"/],
  ];
  it.each(refused)('refuses %s', async (_, words, message) => {
    const { stderr, exitCode, requests } = await runBerth(['volume', ...words], { handler: fleet() });
    expect(stderr).toMatch(message);
    expect(exitCode).toBe(2);
    expect(puts(requests)).toEqual([]);
  });

  it('attaches by the spec of the instance, once', async () => {
    const words = ['volume', 'attach', 'data', 'web', '--read-only'];
    const first = await runBerth(words, { handler: fleet() });
    expect(puts(first.requests)).toMatchObject([{ spec: { volumes: [{ name: 'data', readOnly: true }] } }]);
    const attached = testInstance('web', { spec: { volumes: [{ name: 'data' }] } });
    const second = await runBerth(words, { handler: fleet(testVolume(), attached) });
    expect(puts(second.requests)).toEqual([]);
  });

  it('detaches from whoever has it', async () => {
    const attached = testInstance('web', { spec: { volumes: [{ name: 'data' }, { name: 'more' }] } });
    const held = testVolume({}, { attachedTo: { instance: 'web', id: attached.metadata.id } });
    const { stdout, requests } = await runBerth(['volume', 'detach', 'data'], { handler: fleet(held, attached) });
    expect(puts(requests)).toMatchObject([{ spec: { volumes: [{ name: 'more' }] } }]);
    expect(stdout).toBe('data is detached from web\n');
    expect((await runBerth(['volume', 'detach', 'data'], { handler: fleet() })).stdout).toBe(
      'data is attached to nothing\n',
    );
  });

  it('grows and takes snapshots by its spec', async () => {
    const grown = await runBerth(['volume', 'resize', 'data', '20GiB'], { handler: fleet() });
    expect(puts(grown.requests)).toMatchObject([{ metadata: { revision: 7 }, spec: { sizeGiB: 20 } }]);
    const asOption = await runBerth(['volume', 'resize', 'data', '--size', '20GiB'], { handler: fleet() });
    expect(puts(asOption.requests)).toEqual(puts(grown.requests));
    const kept = await runBerth(['volume', 'snapshot', 'create', 'data', 'before'], { handler: fleet() });
    expect(puts(kept.requests)).toMatchObject([{ spec: { snapshots: ['before'] } }]);
    expect(kept.stdout).toBe('data@before is being created\n');
  });

  it('makes no snapshot under a name that is taken, and says so', async () => {
    const words = ['volume', 'snapshot', 'create', 'data', 'before', '--wait'];
    const taken = await runBerth(words, { handler: fleet(testVolume({ snapshots: ['before'] })) });
    expect(taken).toMatchObject({ exitCode: 5, stdout: '' });
    expect(taken.stderr).toBe(
      'berth: cannot snapshot volume "data": its snapshot "before" exists already\n' +
        '  choose another name, or remove it first: berth volume snapshot rm data before --wait\n',
    );
    expect(puts(taken.requests)).toEqual([]);
  });

  it.each([
    [[], 'data is being removed\n'],
    [['before'], 'data with its snapshot is being removed\n'],
    [['before', 'after'], 'data with its 2 snapshots is being removed\n'],
  ])('says that the snapshots %j go with it', async (snapshots, said) => {
    const { stdout } = await runBerth(['volume', 'rm', 'data'], { handler: fleet(testVolume({ snapshots })) });
    expect(stdout).toBe(said);
  });

  it('waits until its host has done it, and fails when that cannot be', async () => {
    const settle = (...volumes: Volume[]): Handler => {
      const plain = fleet(testVolume({ snapshots: ['before'] }, { observedGeneration: 1 }));
      return (request) =>
        request.query['watch'] === 'true'
          ? { lines: volumes.map((resource) => ({ type: 'put', revision: 8, resource })) }
          : plain(request);
    };
    const words = ['volume', 'resize', 'data', '20GiB', '--wait'];
    const done = await runBerth(words, { handler: settle(testVolume({ sizeGiB: 20 })) });
    expect(done.stdout).toBe('data has 20 GiB\n');
    const lost = testVolume(
      {},
      {
        phase: 'Failed',
        conditions: [{ type: 'Ready', status: 'False', reason: 'VolumeLost', message: 'its file is gone', sinceMs: 0 }],
      },
    );
    const failed = await runBerth(words, { handler: settle(lost) });
    expect(failed.stderr).toContain('volume "data" failed: Failed  its file is gone');
    expect(failed.exitCode).toBe(7);
  });

  it('shows where it is, who has it and what its snapshots are', async () => {
    const volume = testVolume(
      { snapshots: ['before', 'after'] },
      {
        attachedTo: { instance: 'web', id: 'inst_1' },
        volume: {
          state: 'ready',
          sizeGiB: 10,
          usedBytes: 3 * 2 ** 30,
          snapshots: [{ name: 'before', createdAtMs: testNowMs - 3_600_000 }],
        },
      },
    );
    const { stdout } = await runBerth(['volume', 'show', 'data'], { handler: fleet(volume) });
    expect(stdout.split('\n').map((line) => line.trim().replace(/ {2,}/g, ' | '))).toEqual([
      'data | Ready',
      'size | 10 GiB, 3.0 GiB used on the host',
      'host | h1',
      'instance | web',
      'state | Made: it is there',
      'snapshot | before, 60m old',
      'snapshot | after, not created yet',
      '',
    ]);
    const snapshots = await runBerth(['volume', 'snapshot', 'ls', 'data'], { handler: fleet(volume) });
    expect(snapshots.stdout).toBe('NAME        AGE\nbefore      60m\nafter   not yet\n');
    const list = await runBerth(['volume', 'ls'], { handler: fleet(volume) });
    expect(list.stdout).toMatch(/data +Ready +10 GiB +h1 +web +before,after +60s/);
  });
});

describe('berth run --volume', () => {
  it('asks for volumes, to read only where that is said', async () => {
    const handler: Handler = ({ method }) => (method === 'POST' ? { json: testInstance('web') } : undefined);
    const { requests } = await runBerth(['run', 'tiny', '-v', 'data', '--volume', 'gold:ro'], { handler });
    expect(requests[0]?.body).toMatchObject({
      spec: { volumes: [{ name: 'data' }, { name: 'gold', readOnly: true }] },
    });
    const wrong = await runBerth(['run', 'tiny', '-v', 'data:/mnt'], { handler });
    expect(wrong.stderr).toMatch(/--volume cannot be "data:\/mnt"/);
  });
});

describe('berth volume snapshot schedule', () => {
  const schedule = { cron: '0 3 * * *', timeZone: 'UTC', keep: 2 };

  it('sets a schedule, and ends it', async () => {
    const set = await runBerth(['volume', 'snapshot', 'schedule', 'data', '--cron', '0 3 * * *', '--keep', '2'], {
      handler: fleet(),
    });
    expect(set.stdout).toBe('data has the schedule 0 3 * * *\n');
    expect(puts(set.requests)).toMatchObject([
      { spec: { sizeGiB: 10, snapshotSchedule: { cron: '0 3 * * *', keep: 2 } } },
    ]);
    const ended = await runBerth(['volume', 'snapshot', 'schedule', 'data', '--off'], {
      handler: fleet(testVolume({ snapshotSchedule: schedule })),
    });
    expect(puts(ended.requests)).toMatchObject([{ spec: { sizeGiB: 10, snapshots: [] } }]);
    expect(puts(ended.requests)).not.toMatchObject([{ spec: { snapshotSchedule: schedule } }]);
  });

  it('shows it, and says that it keeps its snapshots', async () => {
    const volume = testVolume(
      { snapshotSchedule: schedule, snapshots: ['auto-202611270300'] },
      { snapshotTimes: { handled: 1, nextMs: testNowMs + 3_600_000 } },
    );
    const shown = await runBerth(['volume', 'show', 'data'], { handler: fleet(volume) });
    expect(shown.stdout).toContain('0 3 * * * (UTC), keeps 2, next in 60m');
    const removed = await runBerth(['volume', 'snapshot', 'rm', 'data', 'auto-202611270300'], {
      handler: fleet(volume),
    });
    expect(removed.stderr).toContain('its schedule keeps it until 2 newer ones exist');
    expect(puts(removed.requests)).toEqual([]);
  });
});
