// A project that floods: sixteen connections on each of which as many creates are always under way as the server begins at once.

import { connectRaw, encodeRequest, type RawConnection, type Target } from './raw-http.ts';

const target: Target = JSON.parse(process.argv[2] ?? '');
const pipelined = 64;
let sent = 0;
let answered = 0;
let underWay = 0;
let floods = false;

const connections = await Promise.all(Array.from({ length: 16 }, () => connectRaw(target.url)));
process.on('message', (word: 'go' | 'rest') => {
  floods = word === 'go';
  if (!floods) return tellWhenDone();
  answered = 0;
  for (const connection of connections) for (let i = 0; i < pipelined; i++) create(connection);
});
process.send?.(0);

function create(connection: RawConnection): void {
  const body = { metadata: { name: `flood-${sent++}`, project: 'flood' }, spec: { image: 'bench', cpus: 1 } };
  underWay += 1;
  connection.send(encodeRequest(target, 'POST', '/v1/instances', body), ({ status }) => {
    underWay -= 1;
    if (status === 201) answered += 1;
    if (floods) create(connection);
    else tellWhenDone();
  });
}

function tellWhenDone(): void {
  if (underWay === 0) process.send?.(answered);
}
