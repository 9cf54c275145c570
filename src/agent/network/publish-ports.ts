// Publishes the ports of a guest that has its own address, with a forwarder in the agent. While no agent runs, the ports are closed.

import type { GuestPort } from '../../api/agent-protocol.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { portInUse } from '../host/port-in-use.ts';
import { forwardPorts, type PortForwarder, PortTaken } from './port-forwarder.ts';

interface ForwarderOptions {
  /** Of the guest. */
  readonly record: { readonly instanceId: string; readonly ports: readonly GuestPort[] };
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

/** Publishes the ports of a guest that runs already; retries until the ports are free. */
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
