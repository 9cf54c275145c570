// Suggests the full reference for a container image in short form: `nginx:1.27`. Only for a message; nothing is ever
// fetched by it.

import { containerTransport, readContainerReference } from '../../../api/container-reference.ts';

/** The full reference, for a source that Berth does not accept and that may be a container image; else undefined. */
export function meantContainer(source: string): string | undefined {
  const short = source.startsWith(containerTransport) ? source.slice(containerTransport.length) : source;
  if (/^[a-z]+:\/\//.test(short) || fileEndings.test(short)) return undefined;
  const full = containerTransport + withRegistry(short);
  if (full === source) return undefined;
  if (readContainerReference(full).ok) return full;
  const tagged = `${full}:TAG`;
  return readContainerReference(tagged).ok ? tagged : undefined;
}

/** Endings of files without a scheme. */
const fileEndings = /\.(qcow2|img|raw|iso|zstd?|gz|xz)$/;

/**
 * As container engines read it: a first part without dot and port is an account of Docker Hub, and `library` is the
 * default account.
 */
function withRegistry(short: string): string {
  const [first = '', ...more] = short.split('/');
  if (more.length === 0) return `docker.io/library/${short}`;
  return /[.:]/.test(first) || first === 'localhost' ? short : `docker.io/${short}`;
}
