// A login whose ID token was verified: who it is, and for how long. What becomes of it is decided on a snapshot.

export interface VerifiedLogin {
  /** Who it is: issuer and subject together. The name is only shown. */
  readonly user: { readonly issuer: string; readonly subject: string; readonly name: string };
  readonly grant:
    | {
        readonly kind: 'user';
        readonly provider: string;
        /** Of the same issuer as the user: groups of two issuers are never the same. */
        readonly groups: readonly string[];
      }
    | { readonly kind: 'workload'; readonly rule: string; readonly role: string; readonly project: string };
  readonly expiresInMs: number;
  /** The ID token must not be exchanged again. */
  readonly spent: {
    /** 64 hex digits, the same on every server. */
    readonly digest: string;
    /** When it has expired on every server, so that it may be forgotten. */
    readonly untilMs: number;
  };
}
