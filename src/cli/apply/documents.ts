// The resources that files describe: YAML or JSON, several documents to a file, `berth get -o yaml` among them.

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../base/is-record.ts';
import { type Kind, resourceDefinitions } from '../../api/resources/index.ts';
import type { Cli } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { kindOf, kinds } from '../kinds.ts';
import { fileFailure } from '../options/file-failure.ts';
import { readTextFile } from '../options/read-file.ts';
import { faultText } from '../options/yaml-file.ts';
import { nearest } from '../../api/nearest.ts';
import { pluralOf } from '../../api/resources/plural-of.ts';

/** What a file says of one resource. */
export interface WantedResource {
  readonly kind: Kind;
  readonly name: string;
  /** Empty for resources of the fleet. */
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
  /** `site.yaml:12`, for messages. */
  readonly place: string;
}

const bytesMax = 16 * 1024 * 1024;
const documentsMax = 10_000;

/** Those of all files, folders (their *.yaml, *.yml and *.json, not deeper) and `-`, in their order. Throws `CommandError` that names file and line. */
export async function readDocuments(
  cli: Cli,
  paths: readonly string[],
  project: string,
): Promise<readonly WantedResource[]> {
  const wanted: WantedResource[] = [];
  const known = new Map<string, string>();
  for (const path of await filesOf(paths)) {
    for (const one of await readDocumentsOf(cli, path, project)) {
      const key = `${one.kind} "${one.name}"${one.project === '' ? '' : ` of project ${one.project}`}`;
      const before = known.get(key);
      if (before !== undefined) throw usageError(`${one.place}: ${key} is described at ${before} already`);
      known.set(key, one.place);
      wanted.push(one);
    }
    if (wanted.length > documentsMax) throw usageError(`these are more than ${documentsMax} resources`);
  }
  if (wanted.length === 0) throw usageError(`there are no resources in ${paths.join(', ')}`);
  return wanted;
}

async function filesOf(paths: readonly string[]): Promise<readonly string[]> {
  const files: string[] = [];
  for (const path of paths) {
    if (path === '-' || !(await isFolder(path))) {
      files.push(path);
      continue;
    }
    const names = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/.test(name)).toSorted();
    if (names.length === 0) throw usageError(`there is no *.yaml, *.yml or *.json in ${path}`);
    files.push(...names.map((name) => join(path, name)));
  }
  return files;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw fileFailure(error, `read ${path}`);
  }
}

async function readDocumentsOf(cli: Cli, path: string, project: string): Promise<readonly WantedResource[]> {
  const text = await readTextFile(cli, path, { what: 'resources', bytesMax });
  const { LineCounter, parseAllDocuments } = await import('yaml');
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { strict: true, uniqueKeys: true, schema: 'core', lineCounter: lines });
  return (Array.isArray(parsed) ? parsed : []).flatMap((document) => {
    const start = document.contents?.range?.[0] ?? document.range[0];
    const place = `${path === '-' ? 'standard input' : path}:${lines.linePos(start).line}`;
    const fault = document.errors[0] ?? document.warnings[0];
    if (fault) throw usageError(`cannot read ${faultText(fault, path === '-' ? 'standard input' : path)}`);
    const value: unknown = document.toJS({ maxAliasCount: 0 });
    if (value === null) return []; // between two separators
    return isList(value) ? value.items.map((item) => wantedOf(item, place, project)) : wantedOf(value, place, project);
  });
}

/** As `berth get KIND -o yaml` prints it. */
function isList(value: unknown): value is { readonly items: readonly unknown[] } {
  return isRecord(value) && !('kind' in value) && Array.isArray(value['items']);
}

function wantedOf(value: unknown, place: string, ownProject: string): WantedResource {
  if (!isRecord(value)) throw usageError(`${place}: a resource has the fields kind, metadata and spec`);
  const kind = kindIn(value['kind'], place);
  const { metadata } = value;
  if (!isRecord(metadata)) throw usageError(`${place}: metadata is missing`, 'write metadata: {name: NAME}');
  const unknownField = Object.keys(value).find((field) => !knownFields.has(field));
  if (unknownField !== undefined) throw usageError(`${place}: there is no field "${unknownField}"`);
  const { name, project = ownProject, labels = {} } = metadata;
  if (typeof name !== 'string' || name === '') throw usageError(`${place}: metadata.name is missing`);
  if (typeof project !== 'string') throw usageError(`${place}: metadata.project must be a name`);
  if (!isLabels(labels)) throw usageError(`${place}: metadata.labels must be texts by name`);
  const spec = value['spec'] ?? {};
  if (!isRecord(spec)) throw usageError(`${place}: spec must be an object`);
  const { scope } = resourceDefinitions[kind];
  return { kind, name, project: scope === 'fleet' ? '' : project || ownProject, labels, spec, place };
}

/** A resource may be given as it was read: what the system has written of it is not looked at. */
const knownFields = new Set(['kind', 'schemaVersion', 'metadata', 'spec', 'status']);

function kindIn(word: unknown, place: string): Kind {
  const kind = typeof word === 'string' ? kindOf(word) : undefined;
  if (kind === undefined) {
    const meant = typeof word === 'string' ? nearest(word, kinds) : undefined;
    throw usageError(
      `${place}: kind is ${typeof word === 'string' ? `"${word}", which is none` : 'missing'}`,
      meant ? `did you mean "${meant}"?` : `the kinds are: ${kinds.join(', ')}`,
    );
  }
  const { verbs }: { verbs: readonly string[] } = resourceDefinitions[kind];
  if (!verbs.includes('create') && !verbs.includes('replace'))
    throw usageError(`${place}: ${pluralOf(kind)} are not made from files`);
  return kind;
}

function isLabels(value: unknown): value is Readonly<Record<string, string>> {
  return isRecord(value) && Object.values(value).every((label) => typeof label === 'string');
}
