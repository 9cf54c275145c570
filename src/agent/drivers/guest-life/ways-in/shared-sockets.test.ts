import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { shareSockets } from './shared-sockets.ts';

const instanceId = `inst_${'a'.repeat(26)}`;

it('share one connection while anybody uses it, and are closed by the last', async () => {
  const opened: Socket[] = [];
  const sockets = shareSockets(async () => {
    const socket = new Socket();
    opened.push(socket);
    return socket;
  });
  const [first, second] = await Promise.all([sockets.use(instanceId), sockets.use(instanceId)]);
  expect(second.socket).toBe(first.socket);
  first.release();
  first.release();
  expect(second.socket.destroyed).toBe(false);
  second.release();
  expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
});

it('are opened anew for who comes in the moment in which the last one leaves', async () => {
  const sockets = shareSockets(async () => new Socket());
  const first = await sockets.use(instanceId);
  first.release();
  const second = await sockets.use(instanceId);
  expect(second.socket.destroyed).toBe(false);
  second.release();
});
