// The files of the dashboard as they were built: its page, and scripts and styles whose names change with their content. Read once each,
// when they are asked for.

import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';

export interface WebFile {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** `br`, `gzip`; absent: as it is. */
  readonly encoding?: string;
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
};

/** Written beside each file by the build; the smallest first. */
const encodings = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const;

/** Hashed names only: nothing else of the disk can be named. */
const assetName = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$/;

export class WebFiles {
  readonly #folders: readonly URL[];
  readonly #kept = new Map<string, Promise<Uint8Array | undefined>>();

  /** `folders`: where the build may be; the first that has a file counts. */
  constructor(folders: readonly URL[] = builtFolders) {
    this.#folders = folders;
  }

  /** The text of index.html; undefined: the dashboard was not built. */
  async page(): Promise<string | undefined> {
    const bytes = await this.#find('index.html');
    return bytes && Buffer.from(bytes).toString('utf8');
  }

  /** `accepts`: the value of Accept-Encoding. Undefined: there is no such file. */
  async asset(name: string, accepts: string): Promise<WebFile | undefined> {
    const type = types[extname(name)];
    if (!assetName.test(name) || type === undefined) return undefined;
    for (const encoding of encodings) {
      if (!new RegExp(`\\b${encoding.name}\\b(?!;q=0(\\.0*)?\\b)`).test(accepts)) continue;
      const bytes = await this.#read(`assets/${name}${encoding.ending}`);
      if (bytes !== undefined) return { bytes, type, encoding: encoding.name };
    }
    const bytes = await this.#read(`assets/${name}`);
    return bytes && { bytes, type };
  }

  /** Their names change with their content, so what was read stays right. What is not there is looked for again. */
  async #read(path: string): Promise<Uint8Array | undefined> {
    const known = this.#kept.get(path);
    if (known !== undefined) return known;
    const reading = this.#find(path);
    this.#kept.set(path, reading);
    const bytes = await reading;
    if (bytes === undefined) this.#kept.delete(path);
    return bytes;
  }

  async #find(path: string): Promise<Uint8Array | undefined> {
    for (const folder of this.#folders) {
      const bytes = await readFile(new URL(path, folder)).catch(() => undefined);
      if (bytes !== undefined) return bytes;
    }
    return undefined;
  }
}

/** Beside the program in a built package (scripts/build.ts), and in a checkout. */
const builtFolders = [new URL('../web/', import.meta.url), new URL('../../../web/dist/', import.meta.url)];
