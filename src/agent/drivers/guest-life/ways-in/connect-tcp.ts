// A TCP connection to a port of a guest. Half-open, because some protocols say good-bye one way at a time.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { describeError } from '../../../../base/log.ts';
import { DriverError } from '../../../host/driver-error.ts';

/** Connected. Throws `NotPossible`. `what` is for people. */
export async function connectTcp(to: { readonly host: string; readonly port: number }, what: string): Promise<Socket> {
  const socket = createConnection({ ...to, allowHalfOpen: true, noDelay: true });
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    throw new DriverError('NotPossible', `cannot connect to ${what}: ${describeError(error)}`, error);
  }
}
