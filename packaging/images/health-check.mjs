// Whether the server in this container is ready: for HEALTHCHECK. It trusts any certificate, because it asks itself.

import { request as plain } from 'node:http';
import { request as encrypted } from 'node:https';

const [, port = '7070'] = /:(\d+)$/.exec(process.env.BERTH_SERVER_LISTEN ?? '') ?? [];
const ask = (request) =>
  new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/readyz', rejectUnauthorized: false, timeout: 4000 };
    request(options, (answer) => resolve(answer.resume().statusCode === 200))
      .on('error', () => resolve(false))
      .end();
  });
process.exit((await ask(encrypted)) || (await ask(plain)) ? 0 : 1);
