// A program in TypeScript: its types come from the server's own description, with
//   npx openapi-typescript "$BERTH_URL/openapi.json" --default-non-nullable false -o berth.d.ts
// It runs an instance, waits until it is running, and removes it.

import createClient from 'openapi-fetch';
import type { paths } from './berth.d.ts';

const { BERTH_URL: baseUrl = 'http://127.0.0.1:7070', BERTH_TOKEN: token = '' } = process.env;
const berth = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

const { data: created, error } = await berth.POST('/v1/instances', {
  body: { metadata: { name: 'from-typescript' }, spec: { image: process.argv[2] ?? 'tiny', cpus: 1, memoryMiB: 64 } },
});
if (!created) throw new Error(`it was refused: ${error?.error.message}`);

const params = { path: { name: created.metadata.id } };
for (let phase = created.status.phase; phase !== 'Running'; ) {
  await new Promise((resolve) => setTimeout(resolve, 500));
  const { data } = await berth.GET('/v1/instances/{name}', { params });
  if (!data || data.status.phase === 'Failed') throw new Error('it does not run');
  phase = data.status.phase;
}
process.stdout.write(`${created.metadata.name} runs\n`);
await berth.DELETE('/v1/instances/{name}', { params });
