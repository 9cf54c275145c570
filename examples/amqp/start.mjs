// `npm run example:amqp`: everything on this machine. A broker, a repository over plain HTTP, `berth dev` with the tiny image, and a
// publisher, which sends a JobRequest and prints the JobResult. All of it is removed at the end.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { berth, Example, say } from '../local/example.mjs';
import { freePort, startRabbitmq } from '../local/rabbitmq.mjs';

const here = dirname(fileURLToPath(import.meta.url));

/** What the job runs inside the virtual machine. */
const script = `#!/bin/sh
echo "job $SOLSTICE_JOB_FILE of $SOLSTICE_REPO_URL"
echo "at commit $SOLSTICE_COMMIT_SHA on $(uname -sm)"
cat greeting.txt
`;

process.exitCode = await Example.run(run);

async function run(example) {
  const { directory } = example;
  say('starting RabbitMQ');
  const broker = await startRabbitmq(join(directory, 'rabbitmq'));
  example.onEnd(() => broker.stop());

  say('making a repository, and serving it as plain files');
  const commit = await makeRepository(directory);
  const { url, stop } = await serveFiles(join(directory, 'www'));
  example.onEnd(stop);

  say('starting berth dev, with the tiny image');
  // A configuration of its own, so that the user's contexts stay as they are.
  const environment = { ...process.env, AMQP_URL: broker.url, BERTH_CONFIG: join(directory, 'config.yaml') };
  const listen = `127.0.0.1:${await freePort()}`;
  const dev = ['dev', '--data-dir', join(directory, 'berth'), '--listen', listen];
  await example.startBerth(dev, { environment, ready: /^Ctrl-C/, from: 'stdout', echo: true });
  const images = join(process.cwd(), '.berth/images');
  await runToEnd(process.execPath, [berth, 'image', 'build', 'tiny', '--directory', images], environment);

  say('publishing a JobRequest, and waiting for its JobResult');
  const words = [join(here, 'publisher.mjs'), `${url}/app.git`, commit, 'tiny'];
  const code = await runToEnd(process.execPath, words, environment, { mayFail: true });
  say('the log of the job');
  const jobs = execFileSync(process.execPath, [berth, 'job', 'ls', '-o', 'name'], { env: environment, encoding: 'utf8' });
  for (const job of jobs.split('\n').filter(Boolean))
    await runToEnd(process.execPath, [berth, 'job', 'logs', job], environment, { mayFail: true });
  return code;
}

/** A commit with two files, in a bare repository that needs no server program. Returns its hash. */
async function makeRepository(directory) {
  const [work, bare] = [join(directory, 'work'), join(directory, 'www/app.git')];
  const git = (...words) =>
    execFileSync('git', words, {
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH,
        HOME: directory,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'Example',
        GIT_AUTHOR_EMAIL: 'example@example.test',
        GIT_COMMITTER_NAME: 'Example',
        GIT_COMMITTER_EMAIL: 'example@example.test',
      },
    }).trim();
  git('init', '--quiet', '--initial-branch=main', work);
  await mkdir(join(work, '.solstice'));
  await writeFile(join(work, '.solstice/job.sh'), script);
  await writeFile(join(work, 'greeting.txt'), 'hello from the repository\n');
  git('-C', work, 'add', '--all');
  git('-C', work, 'commit', '--quiet', '--message', 'Say hello');
  git('clone', '--quiet', '--bare', work, bare);
  git('-C', bare, 'update-server-info');
  return git('-C', work, 'rev-parse', 'HEAD');
}

async function serveFiles(root) {
  const answer = async (request, response) => {
    const path = join(root, normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname)));
    const file = await stat(path).catch(() => undefined);
    if (!file?.isFile()) return response.writeHead(404).end();
    response.writeHead(200, { 'content-length': file.size });
    createReadStream(path).pipe(response);
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function runToEnd(program, words, environment, { mayFail = false } = {}) {
  const child = spawn(program, words, { env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0 && !mayFail) throw new Error(`${words.join(' ')} ended with code ${code}`);
  return code ?? 1;
}
