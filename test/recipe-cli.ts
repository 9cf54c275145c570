// The command line in this process, for tests that follow the commands of a document.

import { systemClock, systemFetch } from '../src/base/system.ts';
import { runProgram } from '../src/cli/program.ts';

/** `shownUrl`: the URL of the server as the document has it. */
export async function berthAt(
  { url, shownUrl = url, token }: { readonly url: string; readonly shownUrl?: string; readonly token: string },
  words: readonly string[],
) {
  let stdout = '';
  let stderr = '';
  const text = (data: string | Uint8Array): string => Buffer.from(data).toString();
  const exitCode = await runProgram(
    {
      stdout: { write: (data) => (stdout += text(data)) },
      stderr: { write: (data) => (stderr += text(data)) },
      stdin: (async function* () {})(),
      environment: { NO_COLOR: '1', BERTH_URL: shownUrl, BERTH_TOKEN: token },
      homeDirectory: '/nonexistent',
      clock: systemClock,
      fetch: (address, init) => systemFetch(address.replace(shownUrl, url), init),
      runProgram: () => Promise.resolve(0),
      self: ['berth'],
      version: 'test',
      interruption: () => new AbortController().signal,
    },
    words,
  );
  return { exitCode, stdout, stderr };
}
