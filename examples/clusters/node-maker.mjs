// A provisioner hook for several clusters: creates the nodes of each cluster with that cluster's tools. Berth calls it over HTTP
// (docs/provisioners.md). Replace the functions below `clusters` with your own; here they only keep a list.
//
//   NODE_MAKER_TOKEN=secret node node-maker.mjs 7080

import { createServer } from 'node:http';

/** By name of the cluster, which is the project of the spare. */
const clusters = {
  blue: { join: (node) => `kubeadm join blue.example:6443, as ${node.name} on ${node.host}` },
  green: { join: (node) => `kubeadm join green.example:6443, as ${node.name} on ${node.host}` },
};

/** Nodes by id of the spare. A real hook asks its cluster instead, so that nothing is lost at a restart. */
const nodes = new Map();

const server = createServer((request, response) => void answerTo(request, response));

async function answerTo(request, response) {
  const answer = (status, body = {}) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  if (request.headers.authorization !== `Bearer ${process.env.NODE_MAKER_TOKEN}`) return answer(401);
  const [, spare] = /^\/nodes\/(\w+)$/.exec(request.url) ?? [];
  if (request.method === 'POST') {
    let text = '';
    for await (const piece of request) text += piece;
    return answer(200, make(JSON.parse(text)));
  }
  if (request.method === 'GET') return nodes.has(spare) ? answer(200, nodes.get(spare)) : answer(404);
  if (request.method === 'DELETE') return answer(nodes.delete(spare) ? 200 : 404);
  return answer(405);
}

/** A repeated call for a spare returns the same node. */
function make(asked) {
  const cluster = clusters[asked.project];
  if (cluster === undefined) return { status: 'failed', message: `there is no cluster "${asked.project}"` };
  const known = nodes.get(asked.spareId);
  if (known !== undefined) return known;
  const node = { name: `${asked.project}-${asked.spareId.slice(-6)}`, host: asked.host };
  say(cluster.join(node));
  const made = { status: 'done', name: node.name, address: asked.address || '127.0.0.1' };
  nodes.set(asked.spareId, made);
  return made;
}

server.listen(Number(process.argv[2] ?? 7080), '127.0.0.1', () => say(`listens on ${server.address().port}`));

function say(line) {
  process.stdout.write(`${line}\n`);
}
