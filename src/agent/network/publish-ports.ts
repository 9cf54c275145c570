// Publishes the ports of a guest by a forwarder of the agent's: where the guest has an address of its own. They come back when the agent does.

import { sleep, type Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { GuestRecord } from '../drivers/guest-life/guest-record.ts';
import { portInUse } from '../drivers/guest-life/ways-in/ports.ts';
import { forwardPorts, type PortForwarder, PortTaken } from './port-forwarder.ts';

interface ForwarderOptions {
  readonly record: Pick<GuestRecord, 'instanceId' | 'ports'>;
  readonly bindAddress: string;
  readonly target: () => Promise<string | undefined>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Throws `PortInUse`. */
export async function publishByAgent({ record, ...options }: ForwarderOptions): Promise<PortForwarder> {
  try {
    return await forwardPorts({ ports: record.ports, ...options });
  } catch (error) {
    if (error instanceof PortTaken) throw portInUse(record.instanceId, error.port, options.bindAddress);
    throw error;
  }
}

const retryMs = 5000;

/** For a guest that runs already: tries again until its ports are free. */
export function publishAgain(options: ForwarderOptions): PortForwarder {
  const { clock, log } = options;
  const closing = new AbortController();
  const publish = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        const forwarder = await publishByAgent(options);
        await new Promise<void>((resolve) => {
          if (closing.signal.aborted) resolve();
          else closing.signal.addEventListener('abort', () => resolve(), { once: true });
        });
        return await forwarder.close();
      } catch (error) {
        log.warn('cannot publish the ports of a guest; trying again', { error: describeError(error) });
        await sleep(clock, retryMs, closing.signal);
      }
    }
  };
  const published = publish();
  return {
    close() {
      closing.abort();
      return published;
    },
  };
}
