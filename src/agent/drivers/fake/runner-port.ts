// The host's end of a fake guest's port. What the guest says reaches the driver as an event of the driver's own clock, so that a dead agent
// hears nothing.

import { Duplex } from 'node:stream';
import { DriverError } from '../../host/driver-error.ts';
import type { PortHost } from './guest-runner.ts';
import type { Hands } from './hands.ts';

export function openRunnerPort(hands: Hands, instanceId: string): Duplex {
  hands.throwIfClosed(instanceId);
  const { running, runner, damaged } = hands.here("open the runner's port of", instanceId);
  const refuse = (why: string): DriverError =>
    new DriverError('NotPossible', `cannot open the runner's port of ${instanceId}: ${why}`);
  if (damaged) throw refuse('the record of the guest that is here is damaged');
  if (!running) throw refuse('it does not run');
  if (runner === undefined) throw refuse('it was created without a program');
  if (runner.host?.owner === hands) throw refuse('it is open already');
  const { clock, closing } = hands;
  const arrived: Uint8Array[] = [];
  let ended = false;
  let due = false;
  const arriveSoon = (): void => {
    if (due) return;
    due = true;
    clock.setTimer(0, () => {
      due = false;
      for (const bytes of arrived.splice(0)) port.push(bytes);
      if (ended) port.push(null);
    });
  };
  const host: PortHost = {
    owner: hands,
    deliver(bytes) {
      arrived.push(bytes);
      arriveSoon();
    },
    close() {
      ended = true;
      arriveSoon();
    },
  };
  const letGo = (): void => void port.destroy();
  const port = new Duplex({
    allowHalfOpen: false,
    read() {}, // what arrives is pushed at once
    write(bytes: Uint8Array, _encoding, done) {
      runner.hear(host, bytes);
      done();
    },
    destroy(error, done) {
      closing.removeEventListener('abort', letGo);
      runner.disconnect(host);
      done(error);
    },
  });
  closing.addEventListener('abort', letGo, { once: true });
  runner.connect(host);
  return port;
}
