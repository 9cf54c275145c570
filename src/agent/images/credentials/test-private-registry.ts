// A door before a test registry that lets in who has the password: by basic authentication, or by a token of its token service, as the
// distribution specification has it. Loopback only.

import { once } from 'node:events';
import { createServer, request } from 'node:http';

export interface PrivateRegistry {
  readonly address: string;
  /** How many requests came with the right password or a token for it. */
  withPassword(): number;
  stop(): Promise<void>;
}

export async function startPrivateRegistry({
  behind,
  kind,
  username,
  password,
}: {
  /** The address of the registry. */
  readonly behind: string;
  readonly kind: 'basic' | 'bearer';
  readonly username: string;
  readonly password: string;
}): Promise<PrivateRegistry> {
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const bearer = 'Bearer token-of-the-service';
  let address = '';
  let withPassword = 0;
  const server = createServer((asked, answer) => {
    const { authorization } = asked.headers;
    if (authorization === basic || authorization === bearer) withPassword++;
    if (asked.url?.startsWith('/token') === true) {
      answer.writeHead(authorization === basic ? 200 : 401, { 'content-type': 'application/json' });
      return void answer.end(authorization === basic ? '{"token":"token-of-the-service"}' : '{}');
    }
    if (authorization !== (kind === 'basic' ? basic : bearer)) {
      const challenge =
        kind === 'basic' ? 'Basic realm="private"' : `Bearer realm="http://${address}/token",service="private"`;
      answer.writeHead(401, { 'www-authenticate': challenge, 'content-type': 'application/json' });
      return void answer.end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}');
    }
    const onward = request(`http://${behind}${asked.url ?? ''}`, { method: asked.method, headers: asked.headers });
    onward.once('response', (found) => {
      answer.writeHead(found.statusCode ?? 500, found.headers);
      found.pipe(answer);
    });
    onward.once('error', () => answer.destroy());
    asked.pipe(onward);
  });
  server.listen({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port');
  address = `127.0.0.1:${bound.port}`;
  return {
    address,
    withPassword: () => withPassword,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
