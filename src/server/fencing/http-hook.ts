// A fencing hook over HTTP: POST orders the power off, GET reads the power state back.

import type { Clock } from '../../base/clock.ts';
import { isRecord } from '../../base/is-record.ts';
import { type HttpAnswer, httpCall, jsonOf } from '../spares/http-call.ts';
import type { FencedHost, FenceHook } from './fencing.ts';

export interface HttpHookSettings {
  /** `{host}` and `{address}` are replaced. */
  readonly url: string;
  readonly token?: string;
  readonly timeoutMs: number;
}

export function httpHook(clock: Clock, { url, token, timeoutMs }: HttpHookSettings): FenceHook {
  const headers = {
    'content-type': 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const target = ({ metadata, status }: FencedHost): string =>
    url
      .replaceAll('{host}', encodeURIComponent(metadata.name))
      .replaceAll('{address}', encodeURIComponent(status.address ?? ''));
  return {
    async off(host, signal) {
      const body = JSON.stringify({ power: 'off', host: host.metadata.name });
      const answer = await httpCall(clock, { method: 'POST', url: target(host), headers, body, timeoutMs, signal });
      assertOk(answer, 'power off');
      return `power off: status ${answer.status}`;
    },
    async state(host, signal) {
      const answer = await httpCall(clock, { method: 'GET', url: target(host), headers, timeoutMs, signal });
      assertOk(answer, 'power state');
      const read = jsonOf(answer);
      const power = isRecord(read) ? read['power'] : undefined;
      return typeof power === 'string' ? power.toLowerCase().slice(0, 64) : 'unknown';
    },
  };
}

function assertOk({ status }: HttpAnswer, what: string): void {
  if (status < 200 || status > 299) throw new Error(`${what}: status ${status}`);
}
