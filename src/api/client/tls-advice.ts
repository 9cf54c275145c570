// What a user can do about a failed TLS connection, by the code of the failure. Never to switch verification off.

const unknownAuthority =
  'its certificate is of an authority that is not trusted here; name the authority by the fingerprint that "berth server" logs at its start: berth context set NAME --ca-fingerprint sha256:..., or by a file: --ca FILE';
const speaksPlain = 'it seems to speak plain HTTP; write http://, or start it with --tls';

const adviceByCode: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  DEPTH_ZERO_SELF_SIGNED_CERT: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  CERT_SIGNATURE_FAILURE: unknownAuthority,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its certificate is for other names; use one of those in the URL, or add this one to tlsNames (--tls-name) of the server',
  CERT_HAS_EXPIRED: 'its certificate has expired, or the clock of this machine is ahead',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: the clock of this machine or of the server is wrong',
  INVALID_PURPOSE: 'its certificate is not one of a server',
  ERR_SSL_WRONG_VERSION_NUMBER: speaksPlain,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: speaksPlain,
};

/** Undefined: nothing is known about such a failure. `error` may have the cause in `cause`. */
export function tlsAdvice(error: unknown, url: string): string | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const code = 'code' in each && typeof each.code === 'string' ? each.code : '';
    const advice = adviceByCode[code];
    if (advice !== undefined) return advice;
    const closed = code === 'ECONNRESET' || code === 'UND_ERR_SOCKET';
    if (closed && url.startsWith('http:')) return 'it closed the connection; if it speaks TLS, write https://';
  }
  return undefined;
}
