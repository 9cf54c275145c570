// Programs on this machine may use /schedule without a token, where the operator says so. A web page that is open on this machine is no
// such program: it sends an Origin, or a Host that is no name of this machine, and cannot send JSON without being asked about it first.

import type { IncomingMessage } from 'node:http';
import type { Principal } from '../../../core/access/principal.ts';

export type LocalCaller = (request: IncomingMessage) => Principal | undefined;

/** For requests that showed no credentials; `project`: of their tasks. */
export function localCallerOf(project: string): LocalCaller {
  const principal: Principal = { kind: 'intake', name: 'schedule', project };
  return (request) => (isLocalProgram(request) ? principal : undefined);
}

const served = /^\/(schedule|result)(\/[^/?]*)?(\?|$)/;
const loopbackAddress = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|::ffff:127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/;
const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;
const json = /^application\/json(\s*;|$)/i;
const added = ['origin', 'referer', 'sec-fetch-site', 'x-forwarded-for', 'forwarded', 'via', 'x-real-ip'] as const;

/** A proxy in front of the server says for whom it asks, and that is not this machine. */
function isLocalProgram({ url = '', method, headers, socket }: IncomingMessage): boolean {
  return (
    served.test(url) &&
    loopbackAddress.test(socket.remoteAddress ?? '') &&
    loopbackHost.test(headers.host ?? '') &&
    added.every((name) => headers[name] === undefined) &&
    (method !== 'POST' || json.test(headers['content-type'] ?? ''))
  );
}
