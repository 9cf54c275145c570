import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import type { Agent } from '../agent.ts';
import { instanceId, makeHost, volumeId } from '../testing.ts';
import { DriverError } from '../host/driver-error.ts';
import { packPiece, unpackPiece } from './piece.ts';
import { nextPiece, pauseMs } from './transfer.ts';

const id = `mig_${'0'.repeat(26)}`;
const data = { volumeId, name: 'data', readOnly: false };
const moving = (role: 'incoming' | 'outgoing', copy: boolean, volumes = [volumeId]): Assignment['migration'] => ({
  ...{ id, role, copy, volumes },
});

describe('a guest that moves', () => {
  let from: ReturnType<typeof makeHost>;
  let to: ReturnType<typeof makeHost>;
  let source: Agent;
  let broken: Error | undefined;

  /** On one host, with a volume; another host can ask for it. */
  beforeEach(async () => {
    from = makeHost();
    to = makeHost();
    broken = undefined;
    source = await from.startAgent();
    from.plane.putVolume();
    from.plane.put({ volumes: [data] });
    await from.pass(5000);
    if (from.guest()?.running !== true) throw new Error('its guest does not run');
    to.moveSource = {
      manifest: (move) => source.outgoing.manifest(move),
      async read(move, piece) {
        if (broken !== undefined) throw broken;
        return source.outgoing.read(move, piece);
      },
    };
  });
  afterEach(async () => {
    await from.stopAll();
    await to.stopAll();
  });

  const seen = () => {
    const guest = to.plane.reports.findLast((report) => report.incarnation === 2)?.guest;
    return guest === undefined || guest.state === 'absent' ? undefined : guest.incoming;
  };
  const incoming = (copy: boolean): void =>
    to.plane.put({ incarnation: 2, want: 'incoming', migration: moving('incoming', copy) });
  const stopOnSource = async (): Promise<void> => {
    from.plane.put({ want: 'stopped', volumes: [data], migration: moving('outgoing', true) });
    await from.pass(5000);
  };

  it('is received while it is stopped, and goes on with its disk and its volume', async () => {
    await to.startAgent();
    incoming(false);
    await to.pass(1000);
    expect(seen()).toMatchObject({ id, state: 'prepared' });
    incoming(true);
    await to.pass(1000);
    expect(seen()).toMatchObject({ state: 'prepared', message: expect.stringContaining('does not leave this host') });
    await stopOnSource();
    await to.pass(10_000);
    expect(seen()).toMatchObject({ state: 'received' });
    expect(to.guest()).toBeUndefined(); // nothing starts before it belongs to this host
    to.plane.putVolume({ made: true, life: 2 });
    to.plane.put({ incarnation: 2, want: 'running', volumes: [data], diskIncarnation: 1 });
    await to.pass(5000);
    expect(to.guest()).toMatchObject({ incarnation: 2, running: true, boots: 2 });
    expect(to.plane.lastVolume()).toMatchObject({ state: 'ready' });
    expect(to.incoming.size).toBe(0);
  });

  it('is read by no other move, and never while it runs', async () => {
    const move = { instanceId, id };
    await expect(source.outgoing.manifest(move)).rejects.toThrow(/does not leave this host/);
    await stopOnSource();
    await expect(source.outgoing.manifest({ ...move, id: `mig_${'1'.repeat(26)}` })).rejects.toThrow(/does not leave/);
    expect((await source.outgoing.manifest(move)).files.map(({ name }) => name)).toEqual(['disk', volumeId]);
    from.plane.put({ want: 'running', volumes: [data] });
    await from.pass(1000);
    await expect(source.outgoing.read(move, { name: 'disk', offset: 0, length: 1 })).rejects.toThrow(/does not leave/);
  });

  it('goes on where an agent was killed, or a connection broke', async () => {
    const agent = await to.startAgent();
    await stopOnSource();
    broken = new ApiError('HostUnreachable', 'the line broke');
    incoming(true);
    await to.pass(2000);
    expect(seen()).toMatchObject({ state: 'copying', bytes: 0, message: expect.stringContaining('the line broke') });
    await agent.stop();
    broken = undefined;
    await to.startAgent();
    await to.pass(10_000);
    expect(seen()).toMatchObject({ state: 'received' });
  });

  it('is given up where it cannot be received, and leaves nothing', async () => {
    await to.startAgent();
    await stopOnSource();
    broken = new DriverError('DiskFull', 'no room is left');
    incoming(true);
    await to.pass(2000);
    expect(seen()).toMatchObject({ state: 'failed', message: 'no room is left' });
    to.plane.put({ incarnation: 2, want: 'absent' });
    await to.pass(1000);
    expect(to.plane.reports.at(-1)).toMatchObject({ incarnation: 2, guest: { state: 'absent' } });
    expect(to.incoming.size).toBe(0);
    from.plane.put({ want: 'running', volumes: [data] });
    await from.pass(5000);
    expect(from.guest()).toMatchObject({ running: true, boots: 2 });
  });

  it('is not made with another disk where its own is lost', async () => {
    await to.startAgent();
    to.plane.put({ incarnation: 2, want: 'running', diskIncarnation: 1 });
    await to.pass(2000);
    expect(to.plane.reports.at(-1)?.guest).toMatchObject({ state: 'failed', reason: 'DiskLost' });
  });
});

describe('a transfer', () => {
  it('takes the files one after another, in pieces', () => {
    const files = [
      { name: 'disk', sizeBytes: 10, doneBytes: 10 },
      { name: volumeId, sizeBytes: 10, doneBytes: 4 },
    ];
    expect(nextPiece({ files }, 4)).toEqual({ name: volumeId, offset: 4, length: 4 });
    expect(nextPiece({ files: files.slice(0, 1) })).toBeUndefined();
  });

  it('waits so long that no more than the limit passes: 500 bytes at 1,000 a second are half a second', () => {
    expect(pauseMs({ bytes: 500, tookMs: 100 }, 1000)).toBe(400);
    expect(pauseMs({ bytes: 500, tookMs: 600 }, 1000)).toBe(0);
    expect(pauseMs({ bytes: 500, tookMs: 100 }, undefined)).toBe(0);
  });

  it('notices a piece that did not arrive as it was sent, and sends no zeros', () => {
    const packed = packPiece(Buffer.from('some bytes'));
    expect(Buffer.from(unpackPiece(packed, 10).bytes ?? []).toString()).toBe('some bytes');
    packed[40] = 0;
    expect(() => unpackPiece(packed, 10)).toThrow(/did not arrive/);
    expect(() => unpackPiece(packPiece(Buffer.from('short')), 10)).toThrow(/did not arrive/);
    const zeros = packPiece(Buffer.alloc(4099));
    expect(zeros).toHaveLength(32);
    expect(unpackPiece(zeros, 4099)).toEqual({});
  });
});
