// The JobRequests of a run: what was sent and what the broker has confirmed, kept outside everything under test.

export type RequestKind = 'valid' | 'conflicting' | 'invalid';

export interface SentRequest {
  readonly kind: RequestKind;
  /** The id of its body, if there is one. */
  readonly requestId: string | undefined;
  readonly commit: string | undefined;
  /** The broker has it, and the publisher knows. */
  confirmed: boolean;
}

export class JobRequests {
  /** By body. */
  readonly #sent = new Map<string, SentRequest>();

  noteSent(kind: RequestKind, text: string): void {
    if (this.#sent.has(text)) return;
    const body: { readonly request_id?: unknown; readonly commit_sha?: unknown } = JSON.parse(text);
    this.#sent.set(text, {
      kind,
      requestId: typeof body.request_id === 'string' ? body.request_id : undefined,
      commit: typeof body.commit_sha === 'string' ? body.commit_sha : undefined,
      confirmed: false,
    });
  }

  noteConfirmed(text: string): void {
    const sent = this.#sent.get(text);
    if (sent) sent.confirmed = true;
  }

  of(body: Buffer): SentRequest | undefined {
    return this.#sent.get(body.toString());
  }

  /** Ids of those that must have a job: of valid ones that the broker has. */
  *accepted(): Iterable<string> {
    const ids = new Set<string>();
    for (const { kind, requestId, confirmed } of this.#sent.values())
      if (confirmed && kind !== 'invalid' && requestId !== undefined) ids.add(requestId);
    yield* ids;
  }
}
