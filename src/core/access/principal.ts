// Principal: who makes a request, once it is known.

/** Who makes a request. */
export type Principal =
  /** The bearer of the first token of the fleet: everything is permitted. */
  | { readonly kind: 'admin' }
  /** The bearer of a `token`. `uid` is its id: a new token of the same name is another principal. */
  | { readonly kind: 'token'; readonly name: string; readonly uid: string; readonly tokenId: string }
  /** The agent of a host. `serial`: of the certificate that it has shown; absent: it has a host token. */
  | { readonly kind: 'host'; readonly host: string; readonly serial?: string }
  /** A broker or a forge of the configuration, which brings work into one project. */
  | { readonly kind: 'intake'; readonly name: string; readonly project: string }
  /** A client without credentials, on routes that are open. */
  | { readonly kind: 'anonymous' };

export const anonymous: Principal = { kind: 'anonymous' };

/** For messages and logs: `token "ci"`. */
export function describePrincipal(principal: Principal): string {
  switch (principal.kind) {
    case 'admin':
      return 'the admin token';
    case 'token':
      return `token "${principal.name}"`;
    case 'host':
      return `host "${principal.host}"`;
    case 'intake':
      return `intake "${principal.name}"`;
    case 'anonymous':
      return 'a client without a token';
  }
}
