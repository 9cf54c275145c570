// The schema of every error response. Separate from errors.ts, which the command line imports and which must not load a
// schema library.

import { Type } from 'typebox';
import { type ErrorCode, errorCodes, isErrorCode } from './errors.ts';

const codes: readonly ErrorCode[] = Object.keys(errorCodes).filter(isErrorCode);

export const errorSchema = Type.Object({
  error: Type.Object({
    code: Type.Enum([...codes], { description: codes.map(describe).join('\n') }),
    message: Type.String({ description: 'for people' }),
    traceId: Type.Optional(Type.String({ description: 'id of the trace of the request: 32 hexadecimal digits' })),
    field: Type.Optional(Type.String({ description: 'the place in the request, as `spec.ports[0].hostPort`' })),
    details: Type.Optional(Type.Unknown()),
  }),
});

function describe(code: ErrorCode): string {
  const { status, meaning } = errorCodes[code];
  return `${code} (${status}): ${meaning}`;
}
