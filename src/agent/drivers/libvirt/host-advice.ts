// What of this host's set-up will trouble guests of libvirt's, before it does: consoles that are cut, folders that libvirt's own user cannot
// pass. Only reads; the reader of its advice decides.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closedFolder } from '../../host/guest-user.ts';

/** Sentences for people; none: all is well. `configuration`: libvirt's folder; `root`: that of the guests. */
export async function adviceOn(folders: {
  readonly configuration: string;
  readonly root: string;
}): Promise<readonly string[]> {
  const read = (name: string): Promise<string> => readFile(join(folders.configuration, name), 'utf8').catch(() => ''); // then its defaults hold
  const [qemu, log] = await Promise.all([read('qemu.conf'), read('virtlogd.conf')]);
  const closed = runsAsRoot(qemu) ? undefined : await closedFolder(folders.root);
  return [
    ...(cutsConsoles({ qemu, log })
      ? [
          `libvirt's log daemon cuts consoles at its limit, and logs would miss what is cut off: set max_size = 0 in ${join(folders.configuration, 'virtlogd.conf')} and restart virtlogd`,
        ]
      : []),
    ...(closed === undefined
      ? []
      : [`${closed} is closed to the user that libvirt runs QEMU as: chmod o+x ${closed}, or keep guests elsewhere`]),
  ];
}

/** The log daemon renames a file that has grown to its limit and begins a new one; Berth counts a console's bytes from the first boot. */
export function cutsConsoles(configuration: { readonly qemu: string; readonly log: string }): boolean {
  return setting(configuration.qemu, 'stdio_handler') !== '"file"' && setting(configuration.log, 'max_size') !== '0';
}

export function runsAsRoot(qemu: string): boolean {
  return ['"root"', '"+0"', '"0"'].includes(setting(qemu, 'user') ?? '');
}

/** The last one holds. */
function setting(text: string, name: string): string | undefined {
  return [...text.matchAll(/^[ \t]*(\w+)[ \t]*=[ \t]*("[^"\n]*"|[^\s#]+)/gm)].findLast(([, key]) => key === name)?.[2];
}
