// What somebody may have meant who names a container image as engines take it: `nginx:1.27`. Only a suggestion; nothing is ever fetched by it.

import { containerTransport, readContainerReference } from '../../api/container-reference.ts';

/** The full reference, where the source is one that Berth does not take and could be a container image; else undefined. */
export function meantContainer(source: string): string | undefined {
  const short = source.startsWith(containerTransport) ? source.slice(containerTransport.length) : source;
  if (/^[a-z]+:\/\//.test(short) || fileEndings.test(short)) return undefined;
  const full = containerTransport + withRegistry(short);
  if (full === source) return undefined;
  if (readContainerReference(full).ok) return full;
  const tagged = `${full}:TAG`;
  return readContainerReference(tagged).ok ? tagged : undefined;
}

/** Of a file that is meant, without its scheme. */
const fileEndings = /\.(qcow2|img|raw|iso|zstd?|gz|xz)$/;

/** As engines read it: a first part without dot and port is a folder of Docker Hub, and `library` is the folder of what has none. */
function withRegistry(short: string): string {
  const [first = '', ...more] = short.split('/');
  if (more.length === 0) return `docker.io/library/${short}`;
  return /[.:]/.test(first) || first === 'localhost' ? short : `docker.io/${short}`;
}
