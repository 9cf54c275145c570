// The commands that run a part of Berth itself. A new one is a file and a line here; nothing of it is loaded before it is called.

import type { CommandEntry } from '../cli/registry.ts';

export const processCommands: readonly CommandEntry[] = [];
