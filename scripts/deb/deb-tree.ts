// The files of the Debian package, as they are installed, and its control files below DEBIAN/.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { native, projectRoot, writeProgram } from '../package/program-tree.ts';
import { copyrightText, nodeFolder, thirdPartyText } from './licences.ts';
import { manPages } from './man-pages.ts';

export interface DebVersion {
  /** Of the program: 0.1.0. */
  readonly upstream: string;
  /** Of the package: 0.1.0-1. */
  readonly debian: string;
  /** Of the source, in whole seconds since 1970: every date in the package. */
  readonly epochS: number;
}

const packaging = join(projectRoot, 'packaging');

/** Writes to `root`, which must be empty. */
export async function writeDebTree(root: string, { upstream, debian, epochS }: DebVersion): Promise<void> {
  const at = new Date(epochS * 1000);
  const library = join(root, 'usr/lib/berth');
  const documents = join(root, 'usr/share/doc/berth');
  const bundled = await writeProgram(library, { sourcemap: false });
  writeText(join(library, 'package.json'), `${JSON.stringify({ name: 'berth', version: upstream, type: 'module' })}\n`);
  writeNode(library);
  writeSqlite(library);
  cpSync(join(packaging, 'debian/berth'), join(root, 'usr/bin/berth'));
  chmodSync(join(root, 'usr/bin/berth'), 0o755);

  for (const role of ['server', 'agent']) {
    writeText(join(root, `etc/berth/${role}.yaml`), textOf(`config/${role}.yaml`));
    writeText(join(root, `usr/lib/systemd/system/berth-${role}.service`), unitOf(role));
  }
  for (const [name, text] of await manPages({ version: upstream, date: at.toISOString().slice(0, 10) }))
    writeCompressed(join(root, 'usr/share/man/man1', `${name}.gz`), text);
  writeCompletions(root, join(library, 'main.js'));

  writeText(join(documents, 'copyright'), copyrightText);
  const third = thirdPartyText([...bundled, ...native.map((name) => `node_modules/${name}`)]);
  writeCompressed(join(documents, 'third-party.gz'), third);
  writeText(join(documents, 'README.Debian'), textOf('debian/README.Debian'));
  writeCompressed(join(documents, 'changelog.gz'), readFileSync(join(projectRoot, 'CHANGELOG.md'), 'utf8'));
  writeCompressed(join(documents, 'changelog.Debian.gz'), debianChangelog(debian, at));
  for (const name of ['prometheus', 'grafana'])
    cpSync(join(packaging, name), join(documents, 'examples', name), { recursive: true });
  writeText(join(root, 'usr/share/lintian/overrides/berth'), textOf('debian/lintian-overrides'));

  openToAll(root);
  writeControl(root, debian);
}

/** Without the symbols for debuggers, which are a seventh of it. */
function writeNode(library: string): void {
  const node = join(library, 'bin/node');
  cpSync(join(projectRoot, nodeFolder(), 'bin/node'), node);
  strip(node);
  chmodSync(node, 0o755);
}

/** Its JavaScript, and its machine code for this processor. */
function writeSqlite(library: string): void {
  const [from, to] = [projectRoot, library].map((each) => join(each, 'node_modules/better-sqlite3')) as [
    string,
    string,
  ]; // two of two
  const code = `prebuilds/linux-${process.arch}.node`;
  for (const name of ['lib', 'package.json', code]) cpSync(join(from, name), join(to, name), { recursive: true });
  strip(join(to, code));
  chmodSync(join(to, code), 0o644);
}

function strip(path: string): void {
  execFileSync('strip', ['--remove-section=.comment', '--remove-section=.note', path]);
}

/** The unit of packaging/systemd with the program and the configuration of the package. */
export function unitOf(role: string): string {
  const text = textOf(`systemd/berth-${role}.service`);
  const unit = text
    .replace(/^ExecStart=.*$/m, `ExecStart=/usr/bin/berth ${role} --config /etc/berth/${role}.yaml`)
    .replace(/^EnvironmentFile=-?/m, 'EnvironmentFile=-')
    .replace(/^Description=.*$/m, `$&\nDocumentation=man:berth-${role}(1)`);
  if (unit.includes('/usr/local/')) throw new Error(`packaging/systemd/berth-${role}.service names /usr/local`);
  return unit;
}

const completions = {
  bash: 'usr/share/bash-completion/completions/berth',
  zsh: 'usr/share/zsh/vendor-completions/_berth',
  fish: 'usr/share/fish/vendor_completions.d/berth.fish',
};

function writeCompletions(root: string, main: string): void {
  for (const [shell, path] of Object.entries(completions))
    writeText(join(root, path), execFileSync(process.execPath, [main, 'completion', shell], { encoding: 'utf8' }));
}

function debianChangelog(version: string, at: Date): string {
  const date = at.toUTCString().replace('GMT', '+0000');
  return `berth (${version}) unstable; urgency=medium\n\n  * See changelog.gz for the changes of this version.\n\n -- Berth maintainers <maintainers@berth.example>  ${date}\n`;
}

function writeControl(root: string, version: string): void {
  const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
  const files = filesOf(root);
  const sizeKiB = Math.ceil(files.reduce((sum, path) => sum + lstatSync(join(root, path)).size, 0) / 1024);
  const control = join(root, 'DEBIAN');
  writeText(
    join(control, 'control'),
    textOf('debian/control')
      .replace('@VERSION@', version)
      .replace('@ARCHITECTURE@', architecture)
      .replace('@SIZE@', String(sizeKiB)),
  );
  const settings = files.filter((path) => path.startsWith('etc/'));
  writeText(join(control, 'conffiles'), settings.map((path) => `/${path}\n`).join(''));
  const plain = files.filter((path) => !path.startsWith('etc/') && lstatSync(join(root, path)).isFile());
  writeText(join(control, 'md5sums'), execFileSync('md5sum', plain, { cwd: root, encoding: 'utf8' }));
  for (const name of ['postinst', 'prerm', 'postrm'])
    writeFileSync(join(control, name), textOf(`debian/${name}`), { mode: 0o755 });
}

function filesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => !lstatSync(join(root, path)).isDirectory())
    .toSorted();
}

/** Whatever the umask and the modes in the checkout. */
function openToAll(root: string): void {
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    const file = join(root, path);
    const found = lstatSync(file);
    const runs = /^usr\/bin\/|^usr\/lib\/berth\/bin\/(node|berth\.js)$/.test(path);
    if (!found.isSymbolicLink()) chmodSync(file, found.isDirectory() || runs ? 0o755 : 0o644);
  }
  chmodSync(root, 0o755);
}

function textOf(path: string): string {
  return readFileSync(join(packaging, path), 'utf8');
}

function writeText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** With no date inside. */
function writeCompressed(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, gzipSync(text, { level: 9 }));
}
