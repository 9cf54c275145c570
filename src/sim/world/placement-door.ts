// The Placement API as the false network carries it: each request is the body of one of ours.

import { ApiError } from '../../api/errors.ts';
import { needs } from '../../api/routes/route.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Route } from '../../server/http/route.ts';
import type { PlacementApp } from '../../server/placement/app.ts';

export interface PlacementCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly body?: unknown;
}

export interface PlacementResult {
  readonly status: number;
  readonly json: unknown;
}

export const placementDoorPath = '/placement';

export function placementDoor(app: PlacementApp): Route {
  return {
    method: 'POST',
    path: placementDoorPath,
    access: needs('host', 'update'),
    async handle({ body }) {
      const { method, path, body: sent } = callIn(body);
      const url = new URL(path, 'http://berth');
      const text = sent === undefined ? '' : JSON.stringify(sent);
      const { status, body: answer } = await app.handle({
        ...{ method, path: url.pathname, query: url.searchParams, body: text },
        headers: {
          'openstack-api-version': 'placement 1.39',
          ...(sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(text.length) }),
        },
        caller: { mayRead: true, mayWrite: true },
        ...{ mount: '', origin: 'http://berth', requestId: 'req' },
      });
      if (status === 503) throw new ApiError('Unavailable', answer);
      if (status >= 500) throw new ApiError('Internal', answer);
      return {
        status: 200,
        json: { status, json: answer === '' ? null : JSON.parse(answer) } satisfies PlacementResult,
      };
    },
  };
}

function callIn(body: unknown): PlacementCall {
  if (!isRecord(body)) throw new ApiError('InvalidRequest', 'no call');
  return body as unknown as PlacementCall; // the simulator's own client sends nothing else
}
