// Mistakes of those who ask: a value that was given in confidence, where it does not belong. Every request is refused.

const create = (spec: object) => ({ metadata: { name: 'bad' }, spec: { image: 'tiny', ...spec } });
const run = { script: 'true', artifacts: [] };

/** What has the value, method and path of the request, and its body; a text is sent as it is. */
export const misplaced: readonly (readonly [string, string, string, (value: string) => unknown])[] = [
  ['a name', 'POST', '/v1/instances', (text) => ({ metadata: { name: text }, spec: { image: 'tiny' } })],
  ['a number', 'POST', '/v1/instances', (text) => create({ cpus: text })],
  ['a choice', 'POST', '/v1/instances', (text) => create({ restartPolicy: text })],
  ['a field that is not known', 'POST', '/v1/instances', (text) => create({ enviroment: { A: text } })],
  ['the name of an image', 'POST', '/v1/instances', (text) => create({ image: text })],
  ['a project', 'POST', '/v1/instances', (text) => ({ ...create({}), metadata: { name: 'b', project: text } })],
  [
    'a label whose name is the value',
    'POST',
    '/v1/instances',
    (text) => ({ ...create({}), metadata: { name: 'b', labels: { [text]: text } } }),
  ],
  ['an SSH key', 'POST', '/v1/instances', (text) => create({ sshKeys: [text] })],
  ['user data and a run', 'POST', '/v1/instances', (text) => create({ userData: text, run: { ...run, env: {} } })],
  ['user data that is a list', 'POST', '/v1/instances', (text) => create({ userData: [text] })],
  ['a run with a list', 'POST', '/v1/instances', (text) => create({ run: { ...run, env: { A: [text] } } })],
  [
    'a secret that is not there',
    'POST',
    '/v1/instances',
    (text) => create({ run: { ...run, env: { A: text, B: { secret: 'none', key: 'k' } } } }),
  ],
  [
    'a key that is not there',
    'POST',
    '/v1/instances',
    (text) => create({ run: { ...run, env: { A: text, B: { secret: 'db', key: 'none' } } } }),
  ],
  [
    'the name of a secret',
    'POST',
    '/v1/instances',
    (text) => create({ run: { ...run, env: { A: { secret: text, key: 'k' } } } }),
  ],
  [
    'a variable whose name is the value',
    'POST',
    '/v1/instances',
    (text) => create({ run: { ...run, env: { [text]: 'A' } } }),
  ],
  [
    'a variable of a container whose name is the value',
    'POST',
    '/v1/instances',
    (text) => create({ image: 'boxes', containers: [{ name: 'main', ports: [], env: { [text]: 'A' } }] }),
  ],
  [
    'the user name of an image',
    'POST',
    '/v1/instances',
    (text) =>
      create({
        imageCredentials: [
          { prefix: 'https://images.example/private', username: `robot:${text}`, secret: 'db', key: 'image' },
        ],
      }),
  ],
  [
    'the prefix of an image',
    'POST',
    '/v1/instances',
    (text) =>
      create({
        imageCredentials: [
          { prefix: `http://robot:${encodeURIComponent(text)}@[h/${text}`, secret: 'db', key: 'image' },
        ],
      }),
  ],
  [
    'the source of an image',
    'POST',
    '/v1/images',
    (text) => ({
      metadata: { name: 'bad' },
      spec: { source: `https://robot:${encodeURIComponent(text)}@images.example/a.qcow2` },
    }),
  ],
  [
    'the source of a container',
    'POST',
    '/v1/images',
    (text) => ({
      metadata: { name: 'bad' },
      spec: { format: 'container', source: `docker://robot:${encodeURIComponent(text)}@registry.example/a:1` },
    }),
  ],
  [
    'a secret that is a list',
    'POST',
    '/v1/secrets',
    (text) => ({ metadata: { name: 's' }, spec: { values: { a: [text] } } }),
  ],
  [
    'a secret whose key is the value',
    'POST',
    '/v1/secrets',
    (text) => ({ metadata: { name: 's' }, spec: { values: { [text]: 'a' } } }),
  ],
  [
    'a secret in the wrong place',
    'POST',
    '/v1/secrets',
    (text) => ({ metadata: { name: 's' }, spec: { password: text } }),
  ],
  ['a secret too many', 'POST', '/v1/secrets', (text) => ({ metadata: { name: 'db' }, spec: { values: { a: text } } })],
  ['a body that ends too early', 'POST', '/v1/instances', (text) => `{"spec":{"userData":"${text}`],
  ['a body that is no JSON', 'POST', '/v1/instances', (text) => text],
  ['a body that is a text', 'POST', '/v1/secrets', (text) => JSON.stringify(text)],
  ['a role', 'POST', '/v1/tokens', (text) => ({ metadata: { name: 't' }, spec: { role: text } })],
  [
    'a job',
    'POST',
    '/v1/jobs',
    (text) => ({ metadata: { name: 'j' }, spec: { image: 'tiny', env: [text], script: text } }),
  ],
  ['a delivery', 'POST', '/v1/hooks/hook', (text) => ({ ref: text })],
];
