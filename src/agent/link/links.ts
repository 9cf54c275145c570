// A line to every server of the fleet, so that whichever of them is asked for a console or a log has a way to this host.

import type { Servers } from '../../api/client/servers.ts';
import { firstOf } from '../../base/concurrency/first-of.ts';
import { holdLink, type LinkOptions } from './link.ts';

interface LinksOptions extends Omit<LinkOptions, 'serverUrl' | 'matters'> {
  readonly servers: Servers;
}

/** Holds the lines until `signal` aborts, also to servers that are learned meanwhile. Never rejects. */
export async function holdLinks({ servers, ...options }: LinksOptions, signal: AbortSignal): Promise<void> {
  const held = new Map<string, AbortController>();
  const lines = new Set<Promise<void>>();
  const follow = (): void => {
    const urls = servers.all;
    for (const [url, over] of held) {
      if (urls.includes(url)) continue;
      held.delete(url);
      over.abort();
    }
    for (const serverUrl of urls) {
      if (held.has(serverUrl) || signal.aborted) continue;
      const over = new AbortController();
      const ends = firstOf(over.signal, signal);
      const matters = (): boolean => servers.current === serverUrl;
      held.set(serverUrl, over);
      const line = holdLink({ ...options, serverUrl, matters }, ends.signal).finally(() => {
        ends.forget();
        lines.delete(line);
      });
      lines.add(line);
    }
  };
  const forget = servers.onChange(follow);
  follow();
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  forget();
  await Promise.all(lines);
}
