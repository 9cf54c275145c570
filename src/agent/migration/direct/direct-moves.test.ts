import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { Duplex, PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LiveMachine } from '../../../api/agent-protocol.ts';
import { ApiError } from '../../../api/errors.ts';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system, systemClock } from '../../../base/system.ts';
import { freePort } from '../../../base/test-ports.ts';
import { moveIdentity } from '../../enrolment/move-identity.ts';
import type { Outgoing } from '../move.ts';
import { packPiece, unpackPiece } from '../piece.ts';
import type { MoveIdentity } from './contract.ts';
import { TlsMoves } from './direct-moves.ts';

const move = { instanceId: `inst_${'0'.repeat(26)}`, id: `mig_${'0'.repeat(26)}` };
const outgoing: Outgoing = {
  manifest: async ({ id }) => ({ id, files: [{ name: 'disk', sizeBytes: 10 }] }),
  async read(_move, { name, offset, length }) {
    if (name !== 'disk') throw new ApiError('Conflict', 'its guest is running here');
    return packPiece(Buffer.from('0123456789').subarray(offset, offset + length));
  },
  machine: async () => machine,
  sent: async () => true,
  async send(_move, { dial, onProgress }) {
    onProgress({ bytes: 1, ofBytes: 2 });
    const memory = await dial('memory');
    memory.end('what it remembers');
    await once(memory, 'close');
    return 12;
  },
};
const machine: LiveMachine = { parts: ['one'], disks: [], memoryMiB: 64, ready: true };
const { signal } = new AbortController();

describe('a direct move', () => {
  let identities: readonly [MoveIdentity, MoveIdentity, MoveIdentity];
  const open: TlsMoves[] = [];

  beforeAll(async () => {
    const made = async (): Promise<MoveIdentity> => {
      const directory = await mkdtemp(join(tmpdir(), 'berth-move-'));
      const identity = await moveIdentity(directory);
      expect(await moveIdentity(directory)).toEqual(identity);
      await rm(directory, { recursive: true });
      return identity;
    };
    identities = [await made(), await made(), await made()];
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()));
  });

  const host = (identity: MoveIdentity, first: number, clock = systemClock): TlsMoves => {
    const ports = { first, last: first };
    const log = silentLogger;
    const moves = new TlsMoves({ identity, address: '127.0.0.1', ports, clock, prng: seededPrng(1, 'moves'), log });
    open.push(moves);
    return moves;
  };

  it('reads the files of the source over TLS, and hears what it refuses', async () => {
    const [a, b] = identities;
    const port = await freePort();
    const source = host(a, port);
    const target = host(b, port);
    const at = await target.listen(move, a.fingerprint);
    expect(await target.listen(move, a.fingerprint)).toEqual(at);
    source.offer({ move, peer: b.fingerprint, at, outgoing });
    const files = await target.source(move, signal);
    if (files === undefined) throw new Error('the source has not connected');
    expect(await files.manifest(move, signal)).toMatchObject({ files: [{ name: 'disk', sizeBytes: 10 }] });
    const piece = unpackPiece(await files.read(move, { name: 'disk', offset: 3, length: 4 }, signal), 4);
    expect(Buffer.from(piece.bytes ?? []).toString()).toBe('3456');
    const volume = `vol_${'0'.repeat(26)}`;
    await expect(files.read(move, { name: volume, offset: 0, length: 1 }, signal)).rejects.toThrow(/is running here/);
    const other = { ...move, id: `mig_${'1'.repeat(26)}` };
    await expect(files.manifest(other, signal)).rejects.toThrow(/no such route/);
    expect(await files.machine(move, signal)).toEqual(machine);
    expect(await files.sent(move, signal)).toBe(true);
    const seen: unknown[] = [];
    const pipe = new PassThrough();
    const answers = new PassThrough();
    target.accept(move, async (name) => {
      expect(name).toBe('memory');
      return Duplex.from({ writable: pipe, readable: answers });
    });
    const sent = files.send(move, (progress) => seen.push(progress), signal);
    expect(await text(pipe)).toBe('what it remembers');
    answers.end();
    await sent;
    expect(seen).toEqual([{ bytes: 1, ofBytes: 2 }]);
    target.accept(move, undefined);
    await expect(files.send(move, () => {}, signal)).resolves.toBe(12); // it was closed at once
    source.end(move.instanceId);
    await expect(files.manifest(move, signal)).rejects.toThrow(/connection to the host|closed|canceled/);
  });

  it('lets no other host connect, and connects to no other', async () => {
    const [a, b, c] = identities;
    const clock = createManualClock();
    const port = await freePort();
    const target = host(b, port, clock);
    const at = await target.listen(move, a.fingerprint);
    host(c, port).offer({ move, peer: b.fingerprint, at, outgoing }); // as if it were the source
    host(a, port).offer({ move, peer: c.fingerprint, at, outgoing }); // looks for another target
    const found = target.source(move, signal);
    await clock.advanceSettled(5_000, () => new Promise((resolve) => system.afterTurn(resolve)));
    expect(await found).toBeUndefined();
    expect(await target.source(move, signal)).toBeUndefined(); // without another wait
  });

  it('listens at the first free port, and no longer than for its move', async () => {
    const [a, b] = identities;
    const port = await freePort();
    const moves = host(b, port);
    await moves.listen(move, a.fingerprint);
    const other = { instanceId: `inst_${'1'.repeat(26)}`, id: `mig_${'1'.repeat(26)}` };
    await expect(moves.listen(other, a.fingerprint)).rejects.toThrow(/EADDRINUSE/);
    moves.end(move.instanceId, move.id);
    await expect(moves.listen(other, a.fingerprint)).rejects.toThrow(/EADDRINUSE/);
    moves.end(move.instanceId);
    await moves.close();
    expect((await moves.listen(other, a.fingerprint)).port).toBe(port);
  });
});
