// Requests of other systems have names of their own for the fields of a resource: errors name what the sender has written.

import { ApiError } from '../../../api/errors.ts';

/** The field of the resource → the field of the request. */
export type RequestFields = Readonly<Record<string, string>>;

/** The same error, naming the field that the sender knows; unchanged where the request has none for it. */
export function withRequestField(error: unknown, fields: RequestFields): unknown {
  if (!(error instanceof ApiError)) return error;
  const field = fields[error.field ?? ''];
  if (field === undefined) return error;
  const message = error.message.replace(`${error.field}: `, `${field}: `);
  return new ApiError(error.code, message, { field, details: error.details, cause: error });
}
