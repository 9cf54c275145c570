import { Duplex, PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { GuestAccess } from '../access.ts';
import type { GuestsInside } from '../guest-life/hypervisor.ts';
import { groupAccess } from './access.ts';
import type { Engine } from './engine.ts';

const instanceId = `inst_${'a'.repeat(26)}`;

/** Into a group of one container, in which every command is `stream` and `errors`. */
function accessTo({ stream, errors }: { readonly stream: Duplex; readonly errors: PassThrough }): GuestAccess {
  const engine = { exec: async () => ({ stream, errors, resize: async () => {}, exitCode: async () => 0 }) };
  const inside = { running: () => ({ record: { containers: ['main'] } }) };
  return groupAccess(engine as unknown as Engine, inside as unknown as GuestsInside);
}

it('a connection that breaks while nobody reads on is told to who does', async () => {
  const stream = new Duplex({ read() {}, write: (_data, _encoding, done) => done() });
  const errors = new PassThrough();
  const command = await accessTo({ stream, errors }).exec?.(instanceId, { command: ['yes'], stdin: false });
  const output = (command ?? expect.unreachable()).output()[Symbol.asyncIterator]();
  stream.push('y\n');
  expect(await output.next()).toMatchObject({ value: { stream: 'stdout', data: Buffer.from('y\n') } });
  stream.destroy(new Error('the engine was killed'));
  await turn();
  await turn(); // an unhandled error would have ended the process by now
  expect(await output.next()).toMatchObject({ done: true });
  await expect(command?.exit).rejects.toThrow('the engine was killed');
});
