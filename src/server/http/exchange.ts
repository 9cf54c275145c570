// What every way in does with a request before its route and with a failure after it: parse, allow, translate. HTTP and the
// simulator's false network share it; it knows no HTTP library.

import { describeError } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import { type Identity, may } from '../../core/access/access.ts';
import { badPath, type Route } from './route.ts';

/** 1 MiB: the largest spec is 64 KiB of user-data and some. */
export const bodyBytesMax = 1 << 20;

/** Who asks, if this route is open to them; `host` is the one the path names. Throws `Unauthenticated` or `Forbidden`. */
export function allow(route: Route, identity: Identity | undefined, host: string | undefined): Identity {
  if (route.verb === 'open') return identity ?? { role: 'host', host: '' };
  if (!identity) {
    throw new ApiError('Unauthenticated', 'a valid token is needed: set one with "berth context set" or BERTH_TOKEN');
  }
  if (!may(identity, route.verb, host)) throw new ApiError('Forbidden', 'this token does not permit that');
  return identity;
}

/** Anything thrown, as one of our codes. What we did not foresee is `Internal`, and its text stays in the log. */
export function toApiError(error: unknown, bytesMax = bodyBytesMax): ApiError {
  if (error instanceof ApiError) return error;
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : undefined;
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (status === 413) return new ApiError('PayloadTooLarge', `the body is over ${bytesMax} bytes`, { cause: error });
  if (status === 415)
    return new ApiError('UnsupportedMediaType', 'the body must be application/json', { cause: error });
  if (code === 'FST_ERR_BAD_URL') return badPath(error);
  if (status === 400 || status === 404 || status === 414)
    return new ApiError('InvalidRequest', describeError(error), { cause: error });
  return new ApiError('Internal', 'Berth failed on this request; its log has the details', { cause: error });
}
