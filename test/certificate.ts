// A certificate for 127.0.0.1 that vouches for itself, made by openssl, for tests and benches of TLS.

import { execFileSync } from 'node:child_process';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { FetchLike } from '../src/api/client/client.ts';

export function makeCertificate(directory: string): { certificate: string; key: string } {
  const [certificate, key] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
  const subject = ['-subj', '/CN=berth test', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const words = ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate];
  execFileSync('openssl', words, { stdio: 'ignore' });
  return { certificate, key };
}

/** As fetch, which can be given certificates only when its process starts. */
export function trustingFetch(certificate: string): FetchLike {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const asked = request(url, { method, headers, ca: certificate, ...(signal ? { signal } : {}) }, (response) =>
        resolve({
          status: response.statusCode ?? 0,
          headers: { get: (name) => response.headers[name]?.toString() ?? null },
          body: response,
          text: () => text(response),
        }),
      );
      asked.once('error', reject);
      asked.end(body);
    });
}
