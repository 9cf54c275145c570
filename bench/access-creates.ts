// Creates as fast as a server takes them, by clients that each wait for their answer. Rounds are short, so that two servers or callers that
// take turns have the same machine.

import { connectRaw, encodeRequest, type Target } from './raw-http.ts';

export const hosts = 100;
const clients = 16;
const roundMs = 1_000;

/** Every client sends its next create when the one before is answered. */
export async function createsPerSecond(
  target: Target,
  { prefix, project = 'default' }: { readonly prefix: string; readonly project?: string },
): Promise<number> {
  const open = await Promise.all(Array.from({ length: clients }, () => connectRaw(target.url)));
  const startedAt = performance.now();
  let sent = 0;
  await Promise.all(
    open.map(
      (connection) =>
        new Promise<void>((resolve, reject) => {
          const next = (): void => {
            if (performance.now() - startedAt > roundMs) return resolve();
            const body = {
              metadata: { name: `${prefix}-${sent++}`, project },
              spec: { image: 'bench', cpus: 1, memoryMiB: 64 },
            };
            connection.send(encodeRequest(target, 'POST', '/v1/instances', body), ({ status }) =>
              status === 201 ? next() : reject(new Error(`the server answered ${status}`)),
            );
          };
          next();
        }),
    ),
  );
  for (const connection of open) connection.close();
  return (sent * 1000) / (performance.now() - startedAt);
}
