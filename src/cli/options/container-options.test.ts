import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Handler, runBerth, testInstance } from '../testing.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-test-'));
});
afterAll(() => rm(folder, { recursive: true }));

const create: Handler = () => ({ status: 201, json: testInstance('web') });
const file = async (text: string): Promise<string> => {
  const path = join(folder, 'file.yaml');
  await writeFile(path, text);
  return path;
};

describe('berth run of a container image', () => {
  it('takes command, arguments and environment from flags', async () => {
    const flags = ['--command', '/bin/serve', '--arg', '--fast', '--arg', 'x', '-e', 'A=1=2', '-e', 'TOKEN'];
    const { requests } = await runBerth(['run', 'shop', ...flags], {
      handler: create,
      environment: { TOKEN: 'secret' },
    });
    expect(requests[0]?.body).toMatchObject({
      spec: {
        image: 'shop',
        containers: [
          { name: 'main', command: ['/bin/serve'], args: ['--fast', 'x'], env: { A: '1=2', TOKEN: 'secret' } },
        ],
      },
    });
  });

  it.each([
    [
      'registry.example.com:5000/team=robot:reg/password',
      { prefix: 'registry.example.com:5000/team', username: 'robot', secret: 'reg', key: 'password' },
    ],
    [
      'https://images.example.com/private=reg/token',
      { prefix: 'https://images.example.com/private', secret: 'reg', key: 'token' },
    ],
  ])('takes the credential %s for private images', async (text, credential) => {
    const { requests } = await runBerth(['run', 'shop', '--image-credential', text], { handler: create });
    expect(requests[0]?.body).toMatchObject({ spec: { imageCredentials: [credential] } });
  });

  it.each(['r.example.com', 'r.example.com=robot:password', '=a/b'])('refuses the credential %s', async (text) => {
    const { exitCode, requests, stderr } = await runBerth(['run', 'shop', '--image-credential', text], {
      handler: create,
    });
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).not.toContain(text);
  });

  it('takes several containers from a file, and flags before it', async () => {
    const path = await file(
      'cpus: 1\nports:\n  - guestPort: 80\ncontainers:\n  - name: web\n  - name: side\n    image: proxy\n',
    );
    const { requests } = await runBerth(['run', 'shop', '-f', path, '--cpus', '2'], { handler: create });
    expect(requests[0]?.body).toMatchObject({
      spec: {
        image: 'shop',
        cpus: 2,
        ports: [{ guestPort: 80 }],
        containers: [{ name: 'web' }, { name: 'side', image: 'proxy' }],
      },
    });
  });

  it('takes an environment from a file', async () => {
    const path = await file('# of the shop\nTOKEN=secret\n\nB=2\n');
    const { requests } = await runBerth(['run', 'shop', '--env-file', path, '-e', 'B=3'], { handler: create });
    expect(requests[0]?.body).toMatchObject({ spec: { containers: [{ env: { TOKEN: 'secret', B: '3' } }] } });
  });

  it.each([
    ['=x', '--env names no variable'],
    ['NOWHERE', 'this environment has no such variable'],
  ])('refuses --env %s before it asks the server', async (pair, message) => {
    const { stderr, exitCode, requests } = await runBerth(['run', 'shop', '--env', pair], { handler: create });
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).toContain(message);
  });

  it('names the line of a file that it cannot read, and not what is in it', async () => {
    const path = await file('A=1\nsecret\n');
    const { stderr } = await runBerth(['run', 'shop', '--env-file', path], { handler: create });
    expect(stderr).toContain('line 2 is not NAME=VALUE');
    expect(stderr).not.toContain('secret');
  });

  it('knows what a field of a file was meant to be', async () => {
    const { stderr } = await runBerth(['run', 'shop', '-f', await file('container: []\n')], { handler: create });
    expect(stderr).toContain('did you mean "containers"?');
  });
});
