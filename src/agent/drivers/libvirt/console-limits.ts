// Whether libvirt's log daemon cuts the consoles of guests: it renames a file that has grown to its limit and begins a new one, while
// Berth counts a console's bytes from the guest's first boot. Only reads libvirt's configuration.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a reader of `berth host get` should do; undefined: nothing. `directory`: libvirt's configuration. */
export async function whatCutsConsoles(directory: string): Promise<string | undefined> {
  const [qemu, log] = await Promise.all(
    ['qemu.conf', 'virtlogd.conf'].map((name) => readFile(join(directory, name), 'utf8').catch(() => '')), // then its defaults hold
  );
  return cutsConsoles({ qemu: qemu ?? '', log: log ?? '' })
    ? `libvirt's log daemon cuts consoles at its limit, and logs would miss what is cut off; set max_size = 0 in ${join(directory, 'virtlogd.conf')} and restart virtlogd`
    : undefined;
}

export function cutsConsoles(configuration: { readonly qemu: string; readonly log: string }): boolean {
  return setting(configuration.qemu, 'stdio_handler') !== '"file"' && setting(configuration.log, 'max_size') !== '0';
}

/** The last one holds. */
function setting(text: string, name: string): string | undefined {
  return [...text.matchAll(/^[ \t]*(\w+)[ \t]*=[ \t]*("[^"\n]*"|[^\s#]+)/gm)].findLast(([, key]) => key === name)?.[2];
}
