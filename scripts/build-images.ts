// `npm run build:images [-- --deb FILE --storage DIRECTORY --tar FILE]`: builds the image localhost/berth:<version> with buildah, without a daemon and
// without a registry, from the Debian package (built first unless given) and a minimal Debian. `--storage`: keeps images there instead of in root's own storage.

import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { needDashboard } from './package/dashboard-built.ts';
import { projectRoot } from './package/program-tree.ts';

const { values } = parseArgs({
  options: { deb: { type: 'string' }, storage: { type: 'string' }, tar: { type: 'string' } },
});
if (values.deb === undefined) needDashboard(projectRoot, 'build:images');
const startedAtMs = performance.now();
const { version }: { version: string } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
const name = `localhost/berth:${version}`;
const context = mkdtempSync(join(tmpdir(), 'berth-image-'));
const storage = values.storage === undefined ? [] : storageOptions(resolve(values.storage));
try {
  const packaged = join(projectRoot, 'packaging/images');
  copyFileSync(join(packaged, 'Containerfile'), join(context, 'Containerfile'));
  writeRoot(join(context, 'root'), values.deb ?? buildPackage());
  mkdirSync(join(context, 'data/server'), { recursive: true });
  copyFileSync(join(packaged, 'health-check.mjs'), join(context, 'root/usr/lib/berth/health-check.mjs'));
  // docker's format, because that of OCI has no health checks.
  const words = [
    'build',
    '--quiet',
    '--format',
    'docker',
    '--timestamp',
    epochText(),
    '--build-arg',
    `VERSION=${version}`,
  ];
  buildah(...words, '--tag', name, '--tag', 'localhost/berth:latest', context);
  if (values.tar !== undefined) buildah('push', '--quiet', name, `docker-archive:${resolve(values.tar)}:${name}`);
} finally {
  rmSync(context, { recursive: true, force: true });
}
console.log(`${name}  in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`);

function buildah(...words: readonly string[]): void {
  execFileSync('buildah', [...storage, ...words], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** As podman takes them too. */
function storageOptions(directory: string): string[] {
  return ['--root', join(directory, 'store'), '--runroot', join(directory, 'run')];
}

function buildPackage(): string {
  const out = join(context, 'package');
  execFileSync(process.execPath, [join(projectRoot, 'scripts/build-deb.ts'), '--compression', 'none', '--out', out], {
    stdio: 'inherit',
  });
  const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
  return join(out, `berth_${version}-1_${architecture}.deb`);
}

/** Packages are unpacked, not installed: their scripts would need a whole Debian. */
function writeRoot(root: string, deb: string): void {
  const packages = ['base-files', 'busybox-static', 'libc6', 'libgcc-s1', 'libstdc++6', 'tzdata'];
  const source = ['--variant=extract', '--mode=root', '--quiet', `--include=${packages.join(',')}`];
  execFileSync('mmdebstrap', [...source, 'bookworm', root], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync('dpkg-deb', ['--extract', deb, root]);
  for (const path of [
    'usr/share/man',
    'usr/share/locale',
    'var/cache',
    'var/lib/apt',
    'var/lib/dpkg',
    'etc/apt',
    'dev',
    'etc/systemd',
  ])
    rmSync(join(root, path), { recursive: true, force: true });
  rmSync(join(root, 'usr/lib/systemd'), { recursive: true, force: true });
  for (const applet of ['sh', 'cat', 'env', 'id', 'ls', 'sed'])
    if (!existsSync(join(root, 'bin', applet))) symlinkSync('busybox', join(root, 'bin', applet));
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nberth:x:10001:10001:Berth:/var/lib/berth:/bin/sh\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nberth:x:10001:\n');
}

/** Seconds since 1970: of the commit, so that the same source makes the same image. */
function epochText(): string {
  return (
    process.env.SOURCE_DATE_EPOCH ??
    execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: projectRoot, encoding: 'utf8' }).trim()
  );
}
