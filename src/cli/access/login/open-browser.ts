// Opens the user's browser, where there is one. It may fail in silence: the address was printed before.

import type { Cli } from '../../cli.ts';

export function openBrowser({ environment, runProgram }: Cli, url: string, platform: string): void {
  const hasScreen = platform === 'darwin' || Boolean(environment['DISPLAY'] || environment['WAYLAND_DISPLAY']);
  if (!hasScreen || environment['SSH_CONNECTION']) return;
  // The program may run for as long as the browser does.
  runProgram(platform === 'darwin' ? 'open' : 'xdg-open', [url]).catch(() => {});
}
