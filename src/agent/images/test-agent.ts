// An agent to be killed: runs a program where qemu-img would be. Used by tests only.

import { system, systemClock } from '../../base/system.ts';
import { runQemuImg } from './qemu-img.ts';

const [workingDirectory = '', program = '', ...words] = system.arguments();
await runQemuImg(systemClock, { program, arguments: words, workingDirectory, timeoutMs: 600_000 });
