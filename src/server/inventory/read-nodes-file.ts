// Reads a list of nodes from a file of the server's machine. What is as it was is not read again.

import { open } from 'node:fs/promises';
import { mebibyte } from '../../base/bytes.ts';
import { describeError } from '../../base/log.ts';
import { parseStrictYaml } from '../strict-yaml.ts';
import type { Fetched } from './fetch-nodes.ts';

const bytesMax = 10 * mebibyte;

/** `etag`: of the last reading. Never throws. */
export async function readNodesFile(path: string, etag: string | undefined): Promise<Fetched> {
  try {
    const file = await open(path, 'r');
    try {
      const found = await file.stat({ bigint: true });
      if (!found.isFile()) return { kind: 'failed', why: `${path} is not a file` };
      const now = `${found.ino}-${found.size}-${found.mtimeNs}`;
      if (now === etag) return { kind: 'unchanged' };
      if (found.size > bytesMax) return { kind: 'failed', why: `${path} is over ${bytesMax} bytes` };
      const text = await file.readFile('utf8');
      return { kind: 'list', json: parseStrictYaml(text, path, { bytesMax }).value, etag: now };
    } finally {
      await file.close();
    }
  } catch (error) {
    return { kind: 'failed', why: describeError(error).slice(0, 300) };
  }
}
