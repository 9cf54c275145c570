import { expect, it } from 'vitest';
import { meantContainer } from './container-source.ts';

const digest = `sha256:${'a'.repeat(64)}`;

it.each([
  ['nginx:1.27', 'docker://docker.io/library/nginx:1.27'],
  ['nginx', 'docker://docker.io/library/nginx:TAG'],
  ['docker://nginx:1.27', 'docker://docker.io/library/nginx:1.27'],
  ['grafana/grafana:11.1.0', 'docker://docker.io/grafana/grafana:11.1.0'],
  ['ghcr.io/org/app:2', 'docker://ghcr.io/org/app:2'],
  ['localhost:5000/app:2', 'docker://localhost:5000/app:2'],
  ['localhost/app', 'docker://localhost/app:TAG'],
  [`nginx@${digest}`, `docker://docker.io/library/nginx@${digest}`],
])('%s is meant as %s', (source, meant) => {
  expect(meantContainer(source)).toBe(meant);
});

it.each([
  'docker://docker.io/library/nginx:1.27',
  'https://example.org/nginx',
  'oci://ghcr.io/org/disk:1',
  'debian.qcow2',
  '/srv/images/debian.img',
  './disk',
  'Not An Image',
])('%s is meant as no container image', (source) => {
  expect(meantContainer(source)).toBeUndefined();
});
