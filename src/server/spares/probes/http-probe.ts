// Whether a URL answers. The answer's status counts, nothing of its body is shown: else a user could read what only the server reaches.

import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { portOf } from '../../outbox/webhooks/receiver-guard.ts';
import { httpCall } from '../http-call.ts';
import type { Readiness } from './node-readiness.ts';
import type { ProbeGuard } from './probe-guard.ts';

export interface HttpProbe {
  readonly url: string;
  /** Default: any of 200 to 299. */
  readonly status?: number;
  readonly ownAddress: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export async function probeHttp(
  { guard, clock }: { readonly guard: ProbeGuard; readonly clock: Clock },
  { url: text, status: wanted, ownAddress, timeoutMs, signal }: HttpProbe,
): Promise<Readiness> {
  const never = (message: string): Readiness => ({ ready: false, message, failed: true });
  if (!URL.canParse(text)) return never('it is not a URL');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return never('only http and https are asked');
  if (url.username !== '' || url.password !== '') return never('a URL with a user name is not taken');
  const place = { hostname: url.hostname.replace(/^\[|\]$/g, ''), port: portOf(url), ownAddress };
  const refused = guard.whyNotLiteral(place);
  if (refused !== undefined) return never(refused);
  try {
    const { status } = await httpCall(clock, {
      method: 'GET',
      url: url.href,
      headers: { accept: '*/*' },
      lookup: guard.lookupFor(place),
      whyNot: (address) => guard.whyNot(address, place),
      timeoutMs,
      signal,
    });
    const ready = wanted === undefined ? status >= 200 && status < 300 : status === wanted;
    return { ready, message: `${url.host} answered ${status}` };
  } catch (error) {
    return { ready: false, message: `${url.host}: ${describeError(error)}` };
  }
}
