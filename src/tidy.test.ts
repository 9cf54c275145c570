// The house rules as a test: who may import whom, who may touch the machine, how files are named (docs/ARCHITECTURE.md has the reasons).
// It reads every file of src/ as text and must stay quick enough to run on each save.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';

interface Layer {
  /** Folders of src/ that this one may import, besides itself. */
  readonly folders: readonly string[];
  /** May its files import `node:` modules? Tests always may. */
  readonly node: boolean;
  readonly packages: readonly string[];
}

// The longest path that fits a file is its row.
const layers: Record<string, Layer> = {
  base: { folders: [], node: false, packages: [] },
  'base/message-line.ts': { folders: [], node: true, packages: ['ws'] },
  'base/net': { folders: [], node: true, packages: [] },
  'base/tls': { folders: [], node: true, packages: [] },
  'base/system.ts': { folders: [], node: true, packages: ['pino'] },
  api: { folders: ['base'], node: false, packages: ['typebox'] },
  core: { folders: ['base', 'api'], node: false, packages: [] },
  store: { folders: ['base'], node: true, packages: [] },
  'store/sqlite': { folders: ['base'], node: true, packages: ['better-sqlite3'] },
  'store/postgres': { folders: ['base'], node: true, packages: ['pg'] },
  'store/etcd': { folders: ['base'], node: true, packages: ['@grpc/grpc-js', '@grpc/proto-loader'] },
  server: {
    folders: ['base', 'api', 'core', 'store'],
    node: true,
    packages: ['fastify', 'prom-client', 'typebox', 'yaml'],
  },
  'server/tls': {
    folders: ['base', 'api', 'core', 'store'],
    node: true,
    packages: ['@peculiar/x509', 'reflect-metadata'],
  },
  'server/intake/amqp': { folders: ['base', 'api', 'core'], node: true, packages: ['rabbitmq-client'] },
  'server/oidc': { folders: ['base', 'api', 'core'], node: true, packages: ['jose', 'typebox'] },
  'server/mcp': { folders: ['base', 'api', 'core'], node: true, packages: ['@modelcontextprotocol/server', 'typebox'] },
  'server/outbox/bus/nats': {
    folders: ['base', 'api', 'core', 'store'],
    node: true,
    packages: ['@nats-io/jetstream', '@nats-io/transport-node'],
  },
  'server/outbox/bus/kafka': {
    folders: ['base', 'api', 'core', 'store'],
    node: true,
    packages: ['@platformatic/kafka'],
  },
  'server/outbox/results': { folders: ['base', 'api', 'core'], node: true, packages: [] },
  agent: { folders: ['base', 'api'], node: true, packages: ['typebox', 'ws', 'yaml'] },
  'agent/enrolment': { folders: ['base', 'api'], node: true, packages: ['@peculiar/x509', 'reflect-metadata'] },
  'agent/guests/plan.ts': { folders: ['base', 'api'], node: false, packages: [] },
  cli: { folders: ['base', 'api'], node: true, packages: ['commander', 'picocolors', '@bomb.sh/tab', 'ws', 'yaml'] },
  'cli/jobs/publish-request.ts': { folders: ['base', 'api'], node: true, packages: ['rabbitmq-client'] },
  sim: { folders: ['base', 'api', 'core', 'store', 'server', 'agent'], node: true, packages: [] },
  // Puts whole processes together; nothing imports it but main.ts.
  commands: {
    folders: ['base', 'api', 'core', 'store', 'server', 'agent', 'cli', 'sim'],
    node: true,
    packages: ['commander', 'picocolors', 'typebox'],
  },
  '': { folders: ['base', 'cli', 'commands'], node: true, packages: [] },
};
const testPackages = ['vitest', 'fast-check'];
/** Tests, suites that several tests run, and what only tests use. */
const testFile = /(\.test|(^|\/)conformance|(^|\/)(test-[a-z0-9-]+|testing))\.ts$/;

// What only base/system.ts may say; everyone else gets it as an argument.
const ambient: readonly (readonly [RegExp, string])[] = [
  [/\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b/, 'reads the clock; take a Clock'],
  [/(?<![.\w])(setTimeout|setInterval|setImmediate)\b|\bAbortSignal\.timeout\b/, 'sets a timer; take a Clock'],
  [
    /\bMath\.random\b|\brandom(UUID|Int|Bytes)\b|\bgetRandomValues\b/,
    'draws randomness; take a Prng, or randomSecret as an argument',
  ],
  [/(?<![.\w])process\./, 'touches the process; take what it needs as an argument'],
  [/(?<![.\w])fetch\(/, 'calls the global fetch; take fetch as an argument'],
];
/** Where requests come in: what is written there has a caller, whose rights are asked and whose name the audit log needs. */
const waysIn = /^server\/(http|intake|oidc)\/|^server\/.*-routes\.ts$/;
const withoutCaller = /\bdecide(All)?AndCommit\b|\bcommitter\.(submit|enqueue)\b/;
/** `decideFor` itself; reports of agents; tickets and times of use, which no caller asks for. */
const mayDecideWithoutCaller = new Set([
  'server/http/on-behalf.ts',
  'server/http/routes/hosts/agent-routes.ts',
  'server/http/guest-access.ts',
  'server/http/identity/token-uses.ts',
]);
const castInCode = /[\w)\]}'] as (?!const\b)(?![\w$]+ *(,|}|$))[\w({[]|[)\]}] as (?!const\b)\w/;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/;
const emptyNames = /^(utils?|helpers?|common|manager|misc)\b/;
const foreignWords = /\b(VM worker|worker node|worker machine)s?\b/i;

/** What documents and comments must not say (docs/STYLE.md, "English"). */
const bannedPhrases = [
  'told of',
  'nobody',
  'whoever',
  'whosever',
  'anew',
  'borne',
  'dear',
  'so many',
  'what is so',
  'gives word',
  'goes by it',
  'of one mind',
  'to be had',
  'asked to go',
];
const bannedPhrase = new RegExp(`\\b(${bannedPhrases.join('|').replaceAll(' ', '\\s+')})\\b`, 'gi');
/** Folders with documents, besides the root itself. */
const documentFolders = ['bench', 'changes', 'docs', 'examples', 'scripts', 'src', 'test'];

function layerOf(path: string): Layer {
  const rows = Object.keys(layers).filter((row) => row === '' || path === row || path.startsWith(`${row}/`));
  return layers[rows.sort((a, b) => b.length - a.length)[0] ?? ''] ?? { folders: [], node: false, packages: [] };
}

/** The same lines with comments and one-line strings blanked out, so that rules see code only. */
function codeOnly(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, (text) =>
    text.replace(/[^\n]/g, ' '),
  );
}

function importsOf(source: string): { line: number; target: string }[] {
  const found = source.matchAll(
    /^\s*(?:import|export)\b[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm,
  );
  return [...found].map((match) => ({
    line: source.slice(0, match.index + match[0].length).split('\n').length,
    target: match[1] ?? match[2] ?? match[3] ?? '',
  }));
}

function importFault(path: string, target: string): string | undefined {
  const layer = layerOf(path);
  const test = testFile.test(path);
  if (target.startsWith('.')) {
    const to = posix.join(dirname(path), target);
    const [from, folder] = [path, to].map((file) => (file.includes('/') ? file.slice(0, file.indexOf('/')) : ''));
    if (to.startsWith('../') || folder === undefined || folder === from || layer.folders.includes(folder))
      return undefined;
    return `${from || 'src'}/ may not import ${folder || 'src'}/ (${target})`;
  }
  if (target.startsWith('node:'))
    return layer.node || test ? undefined : `may not import ${target}: it has no hold on the machine`;
  const name = target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
  if (layer.packages.includes(name) || (test && testPackages.includes(name))) return undefined;
  return `may not import the package ${name}; its packages are: ${layer.packages.join(', ') || 'none'}`;
}

/** Every rule broken by one file, as `src/<path>:<line>: <rule>`. */
function faultsOf(path: string, source: string): string[] {
  const faults: string[] = [];
  const fault = (line: number, rule: string): number => faults.push(`src/${path}:${line}: ${rule}`);
  const test = testFile.test(path);
  for (const name of path.split('/')) {
    if (!kebabCase.test(name)) fault(1, `${name} is not kebab-case`);
    if (emptyNames.test(name)) fault(1, `${name} says nothing; name the one idea in it`);
  }
  if (!path.endsWith('.ts')) return faults;

  for (const { line, target } of importsOf(source)) {
    const rule = importFault(path, target);
    if (rule) fault(line, rule);
  }
  if (!test && !/^(#!.*\n)?\/[/*]/.test(source))
    fault(1, 'a file opens with a comment: what it is, and what it must never do');
  codeOnly(source)
    .split('\n')
    .forEach((text, index) => {
      if (!test && path !== 'base/system.ts') {
        for (const [pattern, rule] of ambient) if (pattern.test(text)) fault(index + 1, rule);
        if (castInCode.test(text.replace(/`[^`]*`/g, '')) && !/\/[/*]/.test(source.split('\n')[index] ?? ''))
          fault(index + 1, 'an `as` is for tests and codecs; a comment on its line says why it holds');
        if (waysIn.test(path) && !mayDecideWithoutCaller.has(path) && withoutCaller.test(text))
          fault(index + 1, 'writes without its caller; take decideFor of server/http/on-behalf.ts');
        if (path.startsWith('core/') && /\b(async|await|Promise)\b/.test(text))
          fault(index + 1, 'core/ is synchronous: a decision never waits');
      }
    });
  source.split('\n').forEach((text, index) => {
    if (path !== 'tidy.test.ts' && foreignWords.test(text)) fault(index + 1, 'the word is host');
  });
  return faults;
}

/** The same lines with everything but comments blanked out. */
function commentsOnly(source: string): string {
  const comment = /^\s*(?:\/\/|\/\*\*?|\*)(.*)|(?<=\s)\/\/ (.*)/;
  return source
    .split('\n')
    .map((line) => {
      const [, whole, tail] = comment.exec(line) ?? [];
      return whole ?? tail ?? '';
    })
    .join('\n');
}

/** Every banned phrase in a text, as `<path>:<line>: <phrase>`. The Unix user `nobody` in backticks is allowed. */
function bannedIn(path: string, text: string): string[] {
  const found = text.replaceAll('`nobody`', '`(user)`').matchAll(bannedPhrase);
  return [...found].map((match) => {
    const line = text.slice(0, match.index).split('\n').length;
    return `${path}:${line}: "${match[0].replace(/\s+/g, ' ')}" is not plain English; rewrite the sentence`;
  });
}

/** Import cycles between files, each once, as `a -> b -> a`. */
function cyclesIn(files: ReadonlyMap<string, string>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
    if (done.has(path) || trail.includes(path)) return;
    for (const { target } of importsOf(files.get(path) ?? '')) {
      if (target.startsWith('.')) visit(posix.join(dirname(path), target), [...trail, path]);
    }
    done.add(path);
  };
  for (const path of files.keys()) visit(path, []);
  return cycles;
}

function sourceFiles(): Map<string, string> {
  const entries = readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const paths = entries.map((entry) => join(entry.parentPath, entry.name).slice(import.meta.dirname.length + 1));
  return new Map(paths.map((path) => [path, readFileSync(join(import.meta.dirname, path), 'utf8')]));
}

function documents(): string[] {
  const root = join(import.meta.dirname, '..');
  const inFolder = (folder: string, recursive: boolean): string[] =>
    readdirSync(join(root, folder), { recursive, encoding: 'utf8' }).map((name) => join(folder, name));
  const names = [...inFolder('.', false), ...documentFolders.flatMap((folder) => inFolder(folder, true))];
  return names.filter((name) => name.endsWith('.md'));
}

/** Of the dashboard: it imports `api/` only, of `src/`, and turns no text into markup. As `web/<path>:<line>: <rule>`. */
function webFaultsOf(path: string, source: string): string[] {
  const imports = importsOf(source).flatMap(({ line, target }) => {
    const to = target.startsWith('.') ? posix.join('web', dirname(path), target) : '';
    return to.startsWith('src/') && !to.startsWith('src/api/')
      ? [`web/${path}:${line}: web/ may import api/ only (${target})`]
      : [];
  });
  const markup = /\b(dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write)\b/;
  const lines = codeOnly(source).split('\n');
  return [
    ...imports,
    ...lines.flatMap((text, i) => (markup.test(text) ? [`web/${path}:${i + 1}: turns text into markup`] : [])),
  ];
}

describe('the house', () => {
  const files = sourceFiles();
  it('keeps its rules in every file', () =>
    expect([...files].flatMap(([path, source]) => faultsOf(path, source))).toEqual([]));
  it('keeps those of the dashboard', () => {
    const root = join(import.meta.dirname, '../web');
    const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (name) => /\.tsx?$/.test(name) && !name.startsWith('dist'),
    );
    expect(names.flatMap((name) => webFaultsOf(name, readFileSync(join(root, name), 'utf8')))).toEqual([]);
  });
  it('has no import cycle', () => expect(cyclesIn(files)).toEqual([]));
  it('has no folder of more than forty files', () => {
    const counts = new Map<string, number>();
    for (const path of files.keys()) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > 40)).toEqual([]);
  });
  it('uses plain English', () => {
    const root = join(import.meta.dirname, '..');
    expect(documents().flatMap((path) => bannedIn(path, readFileSync(join(root, path), 'utf8')))).toEqual([]);
    const code = [...files].filter(([path]) => path.endsWith('.ts') && path !== 'tidy.test.ts');
    expect(code.flatMap(([path, source]) => bannedIn(`src/${path}`, commentsOnly(source)))).toEqual([]);
  });
});

describe('the rules see', () => {
  const opening = '// A file.\n';
  it.each([
    [
      'core reaching into the store',
      'core/a.ts',
      `import { x } from '../store/store.ts';`,
      'core/ may not import store/',
    ],
    ['the agent meeting core', 'agent/a.ts', `import type { X } from '../core/x.ts';`, 'agent/ may not import core/'],
    [
      'an import over several lines',
      'api/a.ts',
      `import {\n  x,\n} from '../core/x.ts';`,
      'src/api/a.ts:4: api/ may not import core/',
    ],
    [
      'a test that crosses layers',
      'core/a.test.ts',
      `import { x } from '../server/x.ts';`,
      'core/ may not import server/',
    ],
    ['a lazy import', 'cli/a.ts', `const x = await import('../server/x.ts');`, 'cli/ may not import server/'],
    ['a package in core', 'core/a.ts', `import x from 'typebox';`, 'may not import the package typebox'],
    [
      'a foreign package in a backend',
      'store/memory/a.ts',
      `import x from 'better-sqlite3';`,
      'may not import the package better-sqlite3',
    ],
    [
      'node: in the pure part of the agent',
      'agent/guests/plan.ts',
      `import x from 'node:fs';`,
      'may not import node:fs',
    ],
    ['async in core', 'core/a.ts', 'export async function x() {}', 'core/ is synchronous'],
    [
      'a route that writes without a caller',
      'server/tls/a-routes.ts',
      'await decideAndCommit(decider, decide);',
      'writes without its caller',
    ],
    [
      'an intake that writes without a caller',
      'server/intake/a.ts',
      'decider.committer.submit(plan);',
      'writes without its caller',
    ],
    ['the clock', 'server/a.ts', 'const now = Date.now();', 'reads the clock'],
    ['a date of now', 'server/a.ts', 'const now = new Date();', 'reads the clock'],
    ['a timer', 'agent/a.ts', 'setTimeout(() => {}, 1);', 'sets a timer'],
    ['randomness', 'sim/a.ts', 'const x = Math.random();', 'draws randomness'],
    ['the environment', 'cli/a.ts', 'const x = process.env.X;', 'touches the process'],
    ['the global fetch', 'api/a.ts', 'await fetch(url);', 'calls the global fetch'],
    [
      'an unexplained cast',
      'server/a.ts',
      'const x = JSON.parse(text) as Instance;',
      'an `as` is for tests and codecs',
    ],
    ['camel case', 'core/fitHost.ts', '', 'fitHost.ts is not kebab-case'],
    ['an empty name', 'core/utils.ts', '', 'utils.ts says nothing'],
    ['another word for host', 'core/a.ts', '// a worker node', 'the word is host'],
  ])('%s', (_, path, source, rule) => {
    expect(faultsOf(path, opening + source)).toEqual([expect.stringContaining(rule)]);
  });

  it.each([
    ['the dashboard reaching into core', `import { x } from '../../src/core/x.ts';`, 'web/ may import api/ only'],
    ['text that becomes markup', 'element.innerHTML = text;', 'turns text into markup'],
  ])('%s', (_, source, rule) => {
    expect(webFaultsOf('pages/a.tsx', source)).toEqual([expect.stringContaining(rule)]);
  });

  it('a file that does not say what it is', () => expect(faultsOf('core/a.ts', 'export const x = 1;')).toHaveLength(1));

  it('no fault in code that only speaks of these things', () => {
    const source = `${opening}// Date.now() is for base/system.ts\nconst x = 'setTimeout';\nawait options.fetch(url);\nserver.setTimeout(5);\nnew Date(ctx.nowMs);\nconst y = z as Instance; // the codec: checked just now\nconst w = 5 as const;`;
    expect(faultsOf('server/a.ts', source)).toEqual([]);
  });

  it('a banned phrase, also across two lines, but not the Unix user', () => {
    expect(bannedIn('docs/a.md', 'Run as `nobody`.\nThere are so\nmany. Nobody knows.')).toEqual([
      expect.stringContaining('docs/a.md:2: "so many" is not plain English'),
      expect.stringContaining('docs/a.md:3: "Nobody" is not plain English'),
    ]);
  });

  it('a banned phrase in a comment, but not in code', () => {
    const source = "const nobody = 'whoever'; // made anew\n/**\n * So\n * many.\n */";
    expect(bannedIn('src/a.ts', commentsOnly(source))).toEqual([
      expect.stringContaining('src/a.ts:1: "anew"'),
      expect.stringContaining('src/a.ts:3: "So many"'),
    ]);
  });

  it('a cycle, with the way round', () => {
    const files = new Map([
      ['core/a.ts', `import './b.ts';`],
      ['core/b.ts', `export * from './a.ts';`],
    ]);
    expect(cyclesIn(files)).toEqual(['core/a.ts -> core/b.ts -> core/a.ts']);
  });
});
