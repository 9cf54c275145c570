// The YAML image map of CI operators as images and sizes: pure, but for nothing. It never guesses what an unknown key meant.

import { nearest } from '../../api/nearest.ts';
import { parse } from '../../api/parse.ts';
import { ImageSpec } from '../../api/resources/image.ts';
import { assertContainerImage } from '../../api/container-image.ts';
import { ApiError } from '../../api/errors.ts';
import { parseStrictYaml, type YamlFile, type YamlValue } from '../strict-yaml.ts';

export interface ImageMap {
  readonly images: readonly { readonly name: string; readonly spec: ImageSpec }[];
  readonly sizes: readonly {
    readonly name: string;
    readonly cpus: number;
    readonly memoryMiB: number;
    readonly diskGiB?: number;
  }[];
  /** As written; the image it leads to has the alias `default`. */
  readonly defaultLabel?: string;
}

type Fields = { readonly [key: string]: YamlValue };
type Path = readonly string[];

/** `text` as an image map. Throws `ApiError` `InvalidRequest` with line and column. */
export function parseImageMap(text: string): ImageMap {
  const file = parseStrictYaml(text, 'the image map');
  const top = file.value === null ? {} : fieldsAt(file, file.value, []);
  refuseUnknown(file, top, [], ['default_label', 'aliases', 'sizes', 'images']);
  const images = sectionAt(file, top, 'images');
  const targets = aliasTargets(file, sectionAt(file, top, 'aliases'), images);
  const defaultLabel = defaultLabelOf(file, top, images, targets);
  const leadsTo = (label: string): string => targets.get(label) ?? label;

  return {
    images: Object.entries(images).map(([name, value]) => {
      const aliases = [...targets].filter(([, image]) => image === name).map(([alias]) => alias);
      if (
        defaultLabel !== undefined &&
        leadsTo(defaultLabel) === name &&
        !aliases.includes('default') &&
        name !== 'default'
      )
        aliases.push('default');
      return { name, spec: imageSpec(file, ['images', name], value, aliases) };
    }),
    sizes: Object.entries(sectionAt(file, top, 'sizes')).map(([name, value]) =>
      size(file, ['sizes', name], name, value),
    ),
    ...(defaultLabel === undefined ? {} : { defaultLabel }),
  };
}

/** Every alias with the image at its end: an alias may lead to another one. */
function aliasTargets(file: YamlFile, aliases: Fields, images: Fields): Map<string, string> {
  const targets = new Map<string, string>();
  for (const alias of Object.keys(aliases)) {
    const path = ['aliases', alias];
    if (Object.hasOwn(images, alias))
      throw file.fault(path, `"${alias}" is an image and cannot be an alias too; rename one`);
    const seen = [alias];
    let label = alias;
    while (Object.hasOwn(aliases, label)) {
      const next = aliases[label];
      if (typeof next !== 'string')
        throw file.fault(['aliases', label], 'must be the name of an image or of another alias');
      if (seen.includes(next)) throw file.fault(path, `aliases lead in a circle: ${[...seen, next].join(' -> ')}`);
      seen.push(next);
      label = next;
    }
    if (!Object.hasOwn(images, label)) throw file.fault(path, unknownLabel(label, images, aliases));
    targets.set(alias, label);
  }
  return targets;
}

function defaultLabelOf(
  file: YamlFile,
  top: Fields,
  images: Fields,
  targets: ReadonlyMap<string, string>,
): string | undefined {
  const label = top['default_label'];
  if (label === undefined || label === null) return undefined;
  const path = ['default_label'];
  if (typeof label !== 'string') throw file.fault(path, 'default_label must be the name of an image or alias');
  if (!Object.hasOwn(images, label) && !targets.has(label))
    throw file.fault(path, unknownLabel(label, images, Object.fromEntries(targets)));
  const target = targets.get(label) ?? label;
  const taken = Object.hasOwn(images, 'default') ? 'default' : targets.get('default');
  if (taken !== undefined && taken !== target)
    throw file.fault(
      path,
      `default_label leads to "${target}", but "default" is already a name for "${taken}"; remove one`,
    );
  return label;
}

function unknownLabel(label: string, images: Fields, aliases: Fields): string {
  const known = [...Object.keys(images), ...Object.keys(aliases)];
  const meant = nearest(label, known);
  return `there is no image "${label}"${meant === undefined ? `; known: ${known.join(', ') || 'none'}` : `; did you mean "${meant}"?`}`;
}

const cpuKeys = ['cpu', 'cpus'];
const memoryKeys = ['ram', 'ram_mb', 'ram_mib', 'memory', 'memory_mib'];
const diskKeys = ['disk', 'disk_gb', 'disk_gib'];
const amountKeys = [...cpuKeys, ...memoryKeys, ...diskKeys];
const imageKeys = [
  'source',
  'mirrors',
  'size_bytes',
  'pinned',
  'local_path',
  'decompress',
  'nocloud',
  'default_user',
  'backend',
  'checksum',
  'format',
  'architecture',
  'preload',
  'defaults',
];

/** As maps call the driver whose guests are simulated. */
const noop = 'noop';

/** Of the spec, for keys that are written otherwise in a map. */
const fieldOf: Readonly<Record<string, string>> = {
  default_user: 'defaultUser',
  local_path: 'localPath',
  size_bytes: 'sizeBytes',
};

function imageSpec(file: YamlFile, path: Path, value: YamlValue, aliases: readonly string[]): ImageSpec {
  const fields = fieldsAt(file, value, path);
  refuseUnknown(file, fields, path, [...imageKeys, ...amountKeys]);
  const nested = fields['defaults'];
  const nestedPath = [...path, 'defaults'];
  const nestedFields = nested === undefined || nested === null ? {} : fieldsAt(file, nested, nestedPath);
  refuseUnknown(file, nestedFields, nestedPath, amountKeys);
  const flat = amounts(file, fields, path);
  const inner = amounts(file, nestedFields, nestedPath);
  for (const key of ['cpus', 'memoryMiB', 'diskGiB'] as const) {
    if (flat[key] !== undefined && inner[key] !== undefined)
      throw file.fault(nestedPath, `defaults repeats what the image sets itself (${key}); remove one`);
  }
  const spec: Record<string, YamlValue> = {
    aliases,
    defaults: { ...flat, ...inner },
    preload: true, // every image of the map is made present at start; `preload: false` says otherwise
  };
  for (const key of imageKeys) {
    const given = fields[key];
    if (key !== 'defaults' && given !== undefined && given !== null) spec[fieldOf[key] ?? key] = given;
  }
  if (spec['backend'] === noop) spec['backend'] = 'fake';
  const checksum = spec['checksum'];
  if (typeof checksum === 'string')
    spec['checksum'] = checksum.replace(
      /^(?:sha256:)?([0-9a-f]{64})$/i,
      (_, hex: string) => `sha256:${hex.toLowerCase()}`,
    );
  return checked(file, path, spec);
}

/** The resource's own schema has the last word; its fault is told at the place in the file. */
function checked(file: YamlFile, path: Path, spec: Record<string, YamlValue>): ImageSpec {
  try {
    const image = parse(ImageSpec, spec);
    assertContainerImage(image, '');
    return image;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const field = error.field?.split(/[.[]/)[0] ?? '';
    const key = Object.keys(fieldOf).find((word) => fieldOf[word] === field) ?? field;
    const written = error.message.replace(field, key);
    throw file.fault(Object.hasOwn(spec, field) && key !== 'aliases' ? [...path, key] : path, written);
  }
}

function size(file: YamlFile, path: Path, name: string, value: YamlValue): ImageMap['sizes'][number] {
  const fields = fieldsAt(file, value, path);
  refuseUnknown(file, fields, path, amountKeys);
  const { cpus, memoryMiB, diskGiB } = amounts(file, fields, path);
  if (cpus === undefined) throw file.fault(path, `size "${name}" does not set its cpu`);
  if (memoryMiB === undefined) throw file.fault(path, `size "${name}" does not set its ram`);
  return { name, cpus, memoryMiB, ...(diskGiB === undefined ? {} : { diskGiB }) };
}

function amounts(file: YamlFile, fields: Fields, path: Path): { cpus?: number; memoryMiB?: number; diskGiB?: number } {
  const cpu = only(file, fields, path, cpuKeys);
  const memory = only(file, fields, path, memoryKeys);
  const disk = only(file, fields, path, diskKeys);
  return {
    ...(cpu === undefined ? {} : { cpus: whole(file, cpu, { unit: undefined, min: 1, max: 1024, example: '2' }) }),
    ...(memory === undefined
      ? {}
      : { memoryMiB: whole(file, memory, { unit: 'MiB', min: 16, max: 67_108_864, example: '2048 (MiB), 2GiB' }) }),
    ...(disk === undefined
      ? {}
      : { diskGiB: whole(file, disk, { unit: 'GiB', min: 0, max: 1_048_576, example: '20 (GiB), 1TiB' }) }),
  };
}

interface Found {
  readonly path: Path;
  readonly value: YamlValue;
}

function only(file: YamlFile, fields: Fields, path: Path, keys: readonly string[]): Found | undefined {
  const found = keys.flatMap((key) => {
    const value = fields[key];
    return value === undefined || value === null ? [] : [{ path: [...path, key], value }];
  });
  const [first, second] = found;
  if (first && second)
    throw file.fault(second.path, `${second.path.at(-1)} sets the same as ${first.path.at(-1)}; remove one`);
  return first;
}

const mebibytes: Readonly<Record<string, number>> = {
  m: 1,
  mb: 1,
  mib: 1,
  g: 1024,
  gb: 1024,
  gib: 1024,
  t: 1024 ** 2,
  tb: 1024 ** 2,
  tib: 1024 ** 2,
};

/** A whole number, in `unit` when it is written bare. GB is read as GiB: the maps in use mean that. */
function whole(
  file: YamlFile,
  { path, value }: Found,
  rule: {
    readonly unit: 'MiB' | 'GiB' | undefined;
    readonly min: number;
    readonly max: number;
    readonly example: string;
  },
): number {
  const amount =
    typeof value === 'number'
      ? value
      : typeof value === 'string' && rule.unit !== undefined
        ? inUnit(value, rule.unit)
        : Number.NaN;
  if (Number.isInteger(amount) && amount >= rule.min && amount <= rule.max) return amount;
  const unit = rule.unit === undefined ? '' : ` ${rule.unit}`;
  throw file.fault(
    path,
    `${path.at(-1)} must be a whole number from ${rule.min} to ${rule.max}${unit}, such as ${rule.example}`,
  );
}

function inUnit(text: string, unit: 'MiB' | 'GiB'): number {
  const match = /^(\d{1,9}(?:\.\d{1,3})?) ?([kmgt]i?b?)$/i.exec(text.trim());
  const factor = mebibytes[match?.[2]?.toLowerCase() ?? ''];
  return match === null || factor === undefined
    ? Number.NaN
    : (Number(match[1]) * factor) / (unit === 'GiB' ? 1024 : 1);
}

const nameRule = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;

function sectionAt(file: YamlFile, top: Fields, section: string): Fields {
  const value = top[section];
  if (value === undefined || value === null) return {};
  const fields = fieldsAt(file, value, [section]);
  for (const name of Object.keys(fields)) {
    if (!nameRule.test(name))
      throw file.fault(
        [section, name],
        `"${name.slice(0, 80)}" cannot be a name: use lower-case letters, digits, "-" and ".", 63 at most`,
      );
  }
  return fields;
}

function fieldsAt(file: YamlFile, value: YamlValue, path: Path): Fields {
  if (!isFields(value)) throw file.fault(path, `${path.join('.') || 'the file'} must be a mapping (key: value)`);
  return value;
}

function isFields(value: YamlValue): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuseUnknown(file: YamlFile, fields: Fields, path: Path, known: readonly string[]): void {
  for (const key of Object.keys(fields)) {
    if (known.includes(key)) continue;
    const meant = nearest(key, known);
    const hint = meant === undefined ? `known: ${known.join(', ')}` : `did you mean "${meant}"?`;
    throw file.fault(
      [...path, key],
      `unknown key "${key.slice(0, 80)}"${path.length ? ` in ${path.join('.')}` : ''}; ${hint}`,
    );
  }
}
