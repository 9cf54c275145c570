// The scripts that run before anything is installed read a list of Debian packages; it must not lack one that a part asks for.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { qemuPackages } from '../src/agent/drivers/qemu/packages.ts';
import { imageBuildPackages } from '../src/agent/images/build/build.ts';

const groups: Record<string, { name: string }[]> = JSON.parse(
  readFileSync(new URL('../scripts/debian-packages.json', import.meta.url), 'utf8'),
);
const names = (...chosen: string[]) => chosen.flatMap((group) => (groups[group] ?? []).map((each) => each.name));

it('quickstart installs all that the QEMU driver needs', () => {
  expect(names('qemu')).toEqual(expect.arrayContaining(qemuPackages.map((each) => each.name)));
});

it('quickstart installs all that the tiny image is built with', () => {
  expect(names('qemu', 'tinyImage')).toEqual(expect.arrayContaining(imageBuildPackages.tiny.map((each) => each.name)));
});

it('the tests install all that the Debian image is built with', () => {
  expect(names('qemu', 'debianImage')).toEqual(
    expect.arrayContaining(imageBuildPackages.debian.map((each) => each.name)),
  );
});
