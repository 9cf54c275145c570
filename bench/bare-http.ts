// The least that Node's own HTTP server can do with a create: read the body as JSON, answer a resource of the usual size. What any
// server on it can reach at most, measured beside ours.

import { createServer } from 'node:http';

const answer = JSON.stringify({ padding: 'x'.repeat(1_000) });

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('end', () => {
    JSON.parse(Buffer.concat(pieces).toString());
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': answer.length });
    response.end(answer);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(typeof address === 'object' ? address?.port : '');
});
