// The closed list of error codes, with the meaning, the HTTP status and the exit code of the command line for each.

interface ErrorCodeMeaning {
  readonly status: number;
  readonly exitCode: number;
  readonly meaning: string;
}

export const errorCodes = {
  InvalidRequest: { status: 400, exitCode: 2, meaning: 'The request is malformed; `field` names the place.' },
  Unauthenticated: { status: 401, exitCode: 4, meaning: 'No token, or one that is not valid.' },
  Forbidden: { status: 403, exitCode: 4, meaning: 'The token is valid but does not permit this.' },
  QuotaExceeded: { status: 403, exitCode: 5, meaning: 'The project would exceed its quota.' },
  NotFound: { status: 404, exitCode: 3, meaning: 'There is no such resource or route.' },
  MethodNotAllowed: { status: 405, exitCode: 2, meaning: 'The route exists but not with this method.' },
  RequestTimeout: {
    status: 408,
    exitCode: 6,
    meaning: 'The request was not received completely in time; send it again.',
  },
  AlreadyExists: { status: 409, exitCode: 5, meaning: 'The name is taken.' },
  Conflict: { status: 409, exitCode: 5, meaning: 'The state of the resource does not allow this.' },
  IdempotencyMismatch: {
    status: 409,
    exitCode: 5,
    meaning: 'The idempotency key was used before for another request.',
  },
  StaleEpoch: { status: 409, exitCode: 5, meaning: 'The host has registered again since; this session is over.' },
  Compacted: {
    status: 410,
    exitCode: 6,
    meaning: 'The requested history is no longer kept: list again and watch from there.',
  },
  RevisionMismatch: { status: 412, exitCode: 5, meaning: 'The resource has changed since the revision given.' },
  PayloadTooLarge: { status: 413, exitCode: 2, meaning: 'The body is over the limit.' },
  UnsupportedMediaType: { status: 415, exitCode: 2, meaning: 'The body must be plain, uncompressed application/json.' },
  HeadersTooLarge: { status: 431, exitCode: 2, meaning: 'The URL and the headers are over the limit.' },
  TooManyRequests: { status: 429, exitCode: 6, meaning: 'Too many requests; retry after the time in Retry-After.' },
  Internal: { status: 500, exitCode: 1, meaning: 'An internal error of Berth; its log has the details.' },
  HostUnreachable: {
    status: 503,
    exitCode: 6,
    meaning: 'The host that has the answer is not connected to this control plane now.',
  },
  Unavailable: { status: 503, exitCode: 6, meaning: 'The store or the server cannot answer now; try again.' },
  AuditUnavailable: {
    status: 503,
    exitCode: 6,
    meaning: 'The audit log cannot be written, so nothing is changed; the server retries by itself.',
  },
  StoreFull: { status: 507, exitCode: 6, meaning: 'The store has no room; nothing was changed.' },
} as const satisfies Record<string, ErrorCodeMeaning>;

export type ErrorCode = keyof typeof errorCodes;

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCodes, text);
}

/** Ends a request. `message` is for the user and contains no secret; `cause` goes to the log only. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: ErrorCode;
  /** The place in the request, as a dotted path: `spec.ports[0].guestPort`. */
  readonly field: string | undefined;
  readonly details: unknown;

  constructor(code: ErrorCode, message: string, options: { field?: string; details?: unknown; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.field = options.field;
    this.details = options.details;
  }

  get status(): number {
    return errorCodes[this.code].status;
  }

  /** `traceId`: of the request that this error ends. */
  toBody(traceId?: string): ErrorBody {
    return {
      error: {
        code: this.code,
        message: this.message,
        ...(this.field === undefined ? {} : { field: this.field }),
        ...(this.details === undefined ? {} : { details: this.details }),
        ...(traceId === undefined ? {} : { traceId }),
      },
    };
  }
}

/** After how many seconds the request may be sent again; undefined: it would be refused again. */
export function retryAfterOf({ status, details }: ApiError): number | undefined {
  if (status !== 503 && status !== 429) return undefined;
  const retryAfterS =
    typeof details === 'object' && details !== null && 'retryAfterS' in details ? details.retryAfterS : undefined;
  return typeof retryAfterS === 'number' ? retryAfterS : 1;
}

/** Details of an `Unavailable` that came before anything was written. */
export const nothingChanged = { nothingChanged: true } as const;

/** Whether the request had no effect, so that any request may be sent to another server. Servers of 0.1.0 do not say so. */
export function changedNothing({ code, details }: ApiError): boolean {
  if (code !== 'Unavailable' || typeof details !== 'object' || details === null) return false;
  return 'nothingChanged' in details && details.nothingChanged === true;
}

export interface ErrorBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly traceId?: string;
    readonly field?: string;
    readonly details?: unknown;
  };
}
