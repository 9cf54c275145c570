// The files of packaging/config: valid as they are, and with each example in them taken.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runBerth } from '../../cli/testing.ts';
import { processCommands } from '../registry.ts';

it.each(['server', 'agent'])('packaging/config/%s.yaml is valid, with and without its examples', async (role) => {
  const text = await readFile(new URL(`../../../packaging/config/${role}.yaml`, import.meta.url), 'utf8');
  const complete = text.replace(/^#(?=[a-z]\w*: )/gim, '');
  expect(complete).not.toBe(text);
  const directory = await mkdtemp(join(tmpdir(), 'berth-config-'));
  try {
    for (const content of [text, complete]) {
      const path = join(directory, `${role}.yaml`);
      await writeFile(path, content);
      const { stderr, exitCode } = await runBerth(['config', 'check', `--${role}`, path], { more: processCommands });
      expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
