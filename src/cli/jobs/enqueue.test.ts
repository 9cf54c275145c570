import { describe, expect, it } from 'vitest';
import { runBerth } from '../testing.ts';

const commit = 'a'.repeat(40);
const least = ['enqueue', '--repo-url', 'http://git.test/app.git', '--commit-sha', commit];
const job = { json: { metadata: { name: 'req-1' } } };

describe('berth enqueue', () => {
  it('sends every field to the server and prints the request id', async () => {
    const id = '0b2a1f64-6a5e-4a53-9f0a-6f6f5e1d2c3b';
    const { stdout, requests, exitCode } = await runBerth(
      [
        ...least,
        ...['--request-id', id, '--source', 'github', '--workflow-path', 'ci.sh', '--workflow-job-id', 'build'],
        ...['--runs-on', 'tiny', '--submitted-at', '2026-01-01T00:00:00Z', '--project', 'ci'],
      ],
      { handler: () => job },
    );
    expect({ stdout, exitCode }).toEqual({ stdout: `${id}\n`, exitCode: 0 });
    expect(requests).toMatchObject([
      {
        method: 'POST',
        path: '/v1/job-requests',
        query: { project: 'ci' },
        body: {
          schema_version: 'jobrequest.v1',
          request_id: id,
          source: 'github',
          repo_url: 'http://git.test/app.git',
          commit_sha: commit,
          workflow_path: 'ci.sh',
          workflow_job_id: 'build',
          runs_on: 'tiny',
          submitted_at: '2026-01-01T00:00:00Z',
        },
      },
    ]);
  });

  it('makes an id and takes the time', async () => {
    const { stdout, requests } = await runBerth(least, { handler: () => job });
    expect(stdout).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$/);
    expect(requests).toMatchObject([{ body: { source: 'manual', submitted_at: '2026-01-02T03:04:05.000Z' } }]);
  });

  it.each([
    ['a password in a flag', ['--amqp-url', 'amqp://u:secret@mq'], {}, 'AMQP_URL'],
    ['both ways', ['--amqp-url', 'amqp://mq', '--api'], {}, '--api and --amqp-url cannot both be given'],
    ['a variable that is no URL', [], { AMQP_URL: 'mq secret' }, 'AMQP_URL is not a URL'],
    ['a password that is not encoded', [], { AMQP_URL: 'amqp://u:secret%@mq' }, 'a % in the password'],
  ])('refuses %s', async (_name, words, environment, message) => {
    const { stderr, exitCode } = await runBerth([...least, ...words], { environment });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('secret');
  });

  it('checks the request before it is published', async () => {
    const words = ['enqueue', '--repo-url', 'ssh://git.test/app', '--commit-sha', commit];
    const { stderr, exitCode } = await runBerth(words, { environment: { AMQP_URL: 'amqp://127.0.0.1:1' } });
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining('repo_url must be: an http or https URL'),
    });
  });
});

describe('berth dlq', () => {
  const letter = {
    id: 'd1',
    copies: 2,
    movedBy: 'berth',
    reason: 'NotJson',
    message: 'the message is refused: it is not valid JSON',
    bytes: 6,
  };

  it('lists', async () => {
    const { stdout } = await runBerth(['dlq', 'ls'], { handler: () => ({ json: { items: [letter], more: false } }) });
    expect(stdout).toMatch(/ID +REASON +BY +COPIES +SIZE/);
    expect(stdout).toMatch(/d1 +NotJson +berth +2/);
  });

  it('shows the body without control characters', async () => {
    const { stdout } = await runBerth(['dlq', 'show', 'd1'], {
      handler: () => ({ json: { ...letter, body: 'a\u001b[31m\nb' } }),
    });
    expect(stdout).toContain('reason    NotJson: the message is refused: it is not valid JSON');
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toMatch(/\nb\n$/);
  });

  it.each([
    ['retry', 'POST', '/v1/dead-letters/d1/retry', 'd1 is published again\n'],
    ['drop', 'DELETE', '/v1/dead-letters/d1', 'd1 is dropped\n'],
  ])('%s', async (verb, method, path, output) => {
    const { stdout, requests } = await runBerth(['dlq', verb, 'd1'], { handler: () => ({ json: letter }) });
    expect(stdout).toBe(output);
    expect(requests).toMatchObject([{ method, path }]);
  });
});
