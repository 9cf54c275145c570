import { expect, it } from 'vitest';
import { tlsAdvice } from './tls-advice.ts';

/** As fetch puts it: the code is that of the cause. */
function failure(code: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error('no connection'), { code }) });
}

it.each([
  ['an authority that is not known', 'SELF_SIGNED_CERT_IN_CHAIN', 'https://a:7070', '--ca-fingerprint'],
  ['a chain without its authority', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'https://a:7070', '--ca-fingerprint'],
  ['an authority of the same name with another key', 'CERT_SIGNATURE_FAILURE', 'https://a:7070', '--ca-fingerprint'],
  ['another name', 'ERR_TLS_CERT_ALTNAME_INVALID', 'https://a:7070', '--tls-name'],
  ['an expired certificate', 'CERT_HAS_EXPIRED', 'https://a:7070', 'has expired'],
  ['a clock that is behind', 'CERT_NOT_YET_VALID', 'https://a:7070', 'clock'],
  ['a certificate of an agent', 'INVALID_PURPOSE', 'https://a:7070', 'not one of a server'],
  ['plain HTTP at an https URL', 'ERR_SSL_WRONG_VERSION_NUMBER', 'https://a:7070', 'write http://'],
  ['TLS at an http URL', 'ECONNRESET', 'http://a:7070', 'write https://'],
  ['TLS at an http URL, in the words of undici', 'UND_ERR_SOCKET', 'http://a:7070', 'write https://'],
])('advises on %s', (_name, code, url, advice) => {
  expect(tlsAdvice(failure(code), url)).toContain(advice);
  expect(tlsAdvice(failure(code), url)).not.toMatch(/insecure|reject|skip|verif.* off/i);
});

it.each([
  ['a refused connection', failure('ECONNREFUSED'), 'https://a:7070'],
  ['a connection over TLS that broke', failure('ECONNRESET'), 'https://a:7070'],
  ['what is no error', 'ECONNRESET', 'http://a:7070'],
])('says nothing about %s', (_name, error, url) => {
  expect(tlsAdvice(error, url)).toBeUndefined();
});
