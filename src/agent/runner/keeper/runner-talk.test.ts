import { duplexPair } from 'node:stream';
import { expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { RunnerTalk } from './runner-talk.ts';

it('breaks off with a guest that does not read what it is told', async () => {
  const [, port] = duplexPair();
  const talk = new RunnerTalk({
    port,
    clock: createManualClock(),
    randomSecret: (length) => Buffer.alloc(length, 7),
    offsets: () => ({ stdout: 0, stderr: 0, artifacts: 0 }),
  });
  const over = expect(talk.run(() => Promise.resolve(), new AbortController().signal)).rejects.toThrow('does not read');
  for (let i = 0; i < 100_000 && !port.destroyed; i += 1) talk.say({ kind: 'ack', stream: 'stdout', offset: i });
  await over;
  expect(port.writableLength).toBeLessThan(128 * 1024);
});
