// Refusals of whole requests and failed logins, as the serve layer reports them. A flood must not fill the disk: after some lines a
// minute, those of one address, or of one principal, are only counted, and the count becomes a line.

import type { ApiError } from '../../api/errors.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { anonymous, type Principal } from '../../core/access/principal.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Face } from '../http/caller.ts';
import { limitedAddress } from '../limits/address.ts';
import { type AuditEntry, entryText } from './audit-entry.ts';
import type { AuditLog } from './audit-log.ts';
import { requestTraceId } from '../tracing/request-trace.ts';
import { callerFields, isTold } from './trail.ts';

export interface Refusal {
  readonly error: ApiError;
  /** Undefined: no valid credential. */
  readonly principal: Principal | undefined;
  readonly requestId: string;
  /** A valid one. */
  readonly traceParent?: string | undefined;
  readonly address: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Default: `http`. */
  readonly face?: Face;
}

/** Whether an error is for want of credentials, rights or patience. */
export function isRefusal({ status }: ApiError): boolean {
  return status === 401 || status === 403 || status === 429;
}

const strangersLinesMax = 10;
/** A program that is refused again and again has a fault; its operator needs no line for each. */
const knownLinesMax = 100;
/** Addresses and principals of one minute; those beyond are counted together. */
const sourcesMax = 10_000;
const periodMs = 60_000;

interface Source {
  lines: number;
  counted: number;
  readonly entry: AuditEntry;
  readonly reason: string;
}

export class Refusals {
  readonly #parts: { readonly log: AuditLog; readonly clock: Clock; readonly snapshot: Snapshot };
  #sources = new Map<string, Source>();
  #timer: Timer | undefined;

  constructor(parts: { readonly log: AuditLog; readonly clock: Clock; readonly snapshot: Snapshot }) {
    this.#parts = parts;
  }

  /** Never throws, and does not wait: the refusal is answered anyway. */
  readonly told = (refusal: Refusal): void => {
    const { error, principal } = refusal;
    if (isTold(error)) return;
    const entry = this.#entryOf(refusal);
    const key = principal ? `${entry.who} ${entry.tokenId ?? ''}` : addressOf(refusal.address);
    const source = this.#sourceOf(key, entry, error.code);
    const linesMax = principal ? knownLinesMax : strangersLinesMax;
    if (source.lines >= linesMax) source.counted += 1;
    else {
      source.lines += 1;
      this.#append(entryText(entry), { outcome: 'refused', reason: error.code });
    }
  };

  /** Writes what was counted. */
  stop(): void {
    this.#timer?.cancel();
    this.#endPeriod();
  }

  #entryOf({ principal, requestId, traceParent, address, method, path, face = 'http' }: Refusal): AuditEntry {
    const caller = { principal: principal ?? anonymous, requestId, traceParent, address, face };
    return {
      ...callerFields(caller, this.#parts.snapshot),
      trace: requestTraceId(caller),
      ...{ verb: method, object: path },
    };
  }

  #sourceOf(key: string, entry: AuditEntry, reason: string): Source {
    const known = this.#sources.get(key);
    if (known) return known;
    this.#timer ??= this.#parts.clock.setTimer(periodMs, () => this.#endPeriod(), { background: true });
    if (this.#sources.size < sourcesMax) {
      const { request: _request, trace: _trace, object: _object, verb: _verb, ...who } = entry;
      const source = { lines: 0, counted: 0, entry: { ...who, verb: 'refusals' }, reason };
      this.#sources.set(key, source);
      return source;
    }
    const rest = this.#sources.get('') ?? { lines: knownLinesMax, counted: 0, entry: others, reason };
    this.#sources.set('', rest);
    return rest;
  }

  #endPeriod(): void {
    this.#timer = undefined;
    for (const { counted, entry, reason } of this.#sources.values())
      if (counted > 0) this.#append(entryText(entry), { outcome: 'refused', reason, count: counted });
    this.#sources = new Map();
  }

  #append(entry: string, end: Parameters<AuditLog['append']>[1]): void {
    // While the file cannot be written it is kept, and written later.
    this.#parts.log.append(entry, end).catch(() => {});
  }
}

const others: AuditEntry = { face: 'http', verb: 'refusals', object: 'other addresses' };

/** Of an IPv6 address, its network: who has one has 2⁶⁴ of them. */
function addressOf(address: string): string {
  return limitedAddress(address) ?? 'this machine';
}
