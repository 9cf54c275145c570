// Asks a domain's guest agent by libvirt, which holds the agent's socket itself. What the agent says is not trusted; libvirt bounds it (4 MiB an
// answer, `REMOTE_STRING_MAX` of its protocol).

import { describeError } from '../../../base/log.ts';
import { isRecord } from '../../../base/is-record.ts';
import { DriverError } from '../../host/driver-error.ts';
import { GuestAgentError, type GuestAgentUse, noGuestAgent } from '../guest-life/ways-in/guest-agent.ts';
import type { Connection } from './connection.ts';
import type { Domain, Libvirt } from './libvirt.ts';
import { LibvirtError, libvirtErrors } from './wire/rpc.ts';

/** As for an agent that is asked directly. */
const answerTimeoutSeconds = 10;

/** Holds a connection to libvirt of its own until it is released: an agent that hangs delays no other call. */
export function talkByLibvirt(connection: Connection, domain: Domain): GuestAgentUse {
  const released = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<Libvirt>();
  opened.promise.catch(() => {}); // reported to the caller
  connection
    .apart((libvirt) => {
      opened.resolve(libvirt);
      return released.promise;
    })
    .catch(opened.reject);
  return {
    release: released.resolve,
    talk: {
      async ask(command, values) {
        const words = JSON.stringify({ execute: command, ...(values === undefined ? {} : { arguments: values }) });
        const libvirt = await opened.promise;
        const said = await libvirt.askAgent(domain, words, answerTimeoutSeconds).catch((error: unknown) => {
          throw refusal(error);
        });
        const answer: unknown = JSON.parse(said);
        return isRecord(answer) ? answer['return'] : undefined;
      },
    },
  };
}

function refusal(error: unknown): Error {
  if (!(error instanceof LibvirtError) || error.code === undefined)
    return new DriverError('NotPossible', `libvirt went away, or does not answer: ${describeError(error)}`, error);
  if (error.code === libvirtErrors.agentUnresponsive) return noGuestAgent();
  return new GuestAgentError(error.message.slice(0, 1024));
}
