// The copyright file of the package, and beside it the licence texts of everything that is bundled with Berth.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../package/program-tree.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Berth's own licence, and where the others are. */
export const copyrightText = `Berth is licensed under the Apache License, Version 2.0. On Debian systems its text is in
/usr/share/common-licenses/Apache-2.0.

Copyright 2026 the Berth contributors

The package contains Node.js and other works, each under its own licence. Their licences and copyright notices are in
/usr/share/doc/berth/third-party.gz.
`;

/** `folders`: of the npm packages in the bundle, relative to the project. Those of the dashboard and Node.js are added. */
export function thirdPartyText(folders: readonly string[]): string {
  const all = [...new Set([...folders, ...dashboardPackages(), nodeFolder()])].toSorted();
  return `Works in the package berth, and their licences: ${all.length}\n${all.map(licenceOf).join('')}`;
}

/** The npm package that brings Node.js for this machine. */
export function nodeFolder(): string {
  return `node_modules/node-linux-${process.arch}`;
}

function licenceOf(folder: string): string {
  const { name, version, license } = manifestOf(folder);
  const files = readdirSync(join(projectRoot, folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.map((file) => readFileSync(join(projectRoot, folder, file), 'utf8').trim());
  return `\n${'-'.repeat(78)}\n${[`${name} ${version}, ${license ?? 'see below'}`, ...texts].join('\n\n')}\n`;
}

/** What the sources of the dashboard import, with what those packages depend on: more than ends up in its bundle, never less. */
function dashboardPackages(): string[] {
  const sources = readdirSync(join(projectRoot, 'web'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !/^(dist|node_modules)\/|\.test\.|vite\.config/.test(path))
    .map((path) => readFileSync(join(projectRoot, 'web', path), 'utf8'));
  const imported = sources.flatMap((text) =>
    [...text.matchAll(/(?:from|import\(?) ?'((?:@[^/']+\/)?[^./'][^/']*)/g)].map(([, name = '']) => name),
  );
  const found = new Set<string>();
  const add = (name: string): void => {
    const folder = `node_modules/${name}`;
    if (found.has(folder) || !existsSync(join(projectRoot, folder, 'package.json'))) return;
    found.add(folder);
    Object.keys(manifestOf(folder).dependencies ?? {}).forEach(add);
  };
  imported.forEach(add);
  return [...found];
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(projectRoot, folder, 'package.json'), 'utf8'));
}
