// Packages of Berth as users install them, of the last release and of this checkout, to test an upgrade from one to the other.

import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../..', import.meta.url));

export interface BuiltPackage {
  readonly version: string;
  /** The program, to be run by Node. */
  readonly program: string;
  /** Where its source is from: `tag v0.1.0`, `commit 1d0849eb`, `this checkout`. */
  readonly from: string;
}

/** What a release is built of. */
const parts = ['src', 'scripts', 'bin', 'package.json', 'examples', 'packaging', 'README.md', 'LICENSE'];

/**
 * The last release: of the newest tag `v*`, else of the commit that cut the version, where the history goes back to it; else of this checkout with a
 * lower version number, which tests less.
 */
export async function buildReleased(directory: string): Promise<BuiltPackage> {
  const released = releasedCommit();
  const into = join(directory, 'released');
  if (released === undefined) return buildHere(into, '0.0.9');
  await mkdir(into, { recursive: true });
  const archive = execFileSync('git', ['archive', released.commit], { cwd: project, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', into], { input: archive });
  return { ...(await packed(into)), from: released.name };
}

/** This checkout, as the minor version after `released`. */
export async function buildNext(directory: string, released: BuiltPackage): Promise<BuiltPackage> {
  const [major = 0, minor = 0] = released.version.split('.').map(Number);
  return buildHere(join(directory, 'next'), `${major}.${minor + 1}.0`);
}

async function buildHere(into: string, version: string): Promise<BuiltPackage> {
  await mkdir(into, { recursive: true });
  for (const part of parts) await cp(join(project, part), join(into, part), { recursive: true });
  const current = versionOf(await readFile(join(into, 'package.json'), 'utf8'));
  for (const file of ['package.json', 'src/base/version.ts']) {
    const text = await readFile(join(into, file), 'utf8');
    await writeFile(join(into, file), text.replace(current, version));
  }
  return { ...(await packed(into)), from: 'this checkout' };
}

/** Builds, packs and unpacks; npm would install the native packages that are in the checkout. */
async function packed(source: string): Promise<Omit<BuiltPackage, 'from'>> {
  const version = versionOf(await readFile(join(source, 'package.json'), 'utf8'));
  await symlink(join(project, 'node_modules'), join(source, 'node_modules'));
  await mkdir(join(source, 'web/dist'), { recursive: true });
  await writeFile(join(source, 'web/dist/index.html'), '<!doctype html><title>Berth</title>');
  execFileSync(process.execPath, ['scripts/build.ts'], { cwd: source, stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync('tar', ['-xzf', `dist/berth-${version}.tgz`], { cwd: source });
  const installed = join(source, 'package');
  await symlink(join(project, 'node_modules'), join(installed, 'node_modules'));
  return { version, program: join(installed, 'bin/berth.js') };
}

function versionOf(manifest: string): string {
  const { version }: { version: string } = JSON.parse(manifest);
  return version;
}

function releasedCommit(): { readonly commit: string; readonly name: string } | undefined {
  const git = (...words: string[]): string => {
    try {
      return execFileSync('git', words, { cwd: project, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      return ''; // no repository here
    }
  };
  const [tag = ''] = git('tag', '--list', 'v*', '--sort=-version:refname').split('\n');
  if (tag !== '') return { commit: tag, name: `tag ${tag}` };
  const heading = /^## \d+\.\d+\.\d+/m.exec(git('show', 'HEAD:CHANGELOG.md'))?.[0];
  if (heading === undefined) return undefined;
  const commit = git('log', '--reverse', '--format=%h', `-S${heading} (`, '--', 'CHANGELOG.md').split('\n')[0] ?? '';
  const isWhole = commit !== '' && git('rev-parse', '--is-shallow-repository') === 'false';
  return isWhole ? { commit, name: `commit ${commit}` } : undefined;
}
