import { describe, expect, it } from 'vitest';
import { engineReference, readContainerReference } from './container-reference.ts';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

describe('the reference of a container image', () => {
  const good: readonly (readonly [string, string])[] = [
    ['docker://docker.io/library/nginx:1.27', 'docker.io/library/nginx:1.27'],
    ['docker://quay.io/a/b__c/d-e.f:V1.0_x', 'quay.io/a/b__c/d-e.f:V1.0_x'],
    ['docker://localhost/web:1', 'localhost/web:1'],
    ['docker://127.0.0.1:5000/web:1', '127.0.0.1:5000/web:1'],
    ['docker://registry:5000/web:1', 'registry:5000/web:1'],
    [`docker://docker.io/library/nginx@${digest}`, `docker.io/library/nginx@${digest}`],
    [`docker://docker.io/library/nginx:1.27@${digest}`, `docker.io/library/nginx@${digest}`],
  ];
  it.each(good)('%s is what engines call %s', (source, expected) => {
    const read = readContainerReference(source);
    expect(read.ok && engineReference(read.reference)).toBe(expected);
  });

  const bad: readonly (readonly [string, string])[] = [
    ['https://docker.io/library/nginx:1', 'does not begin with'],
    ['docker://nginx:1', 'names no registry'],
    ['docker://library/nginx:1', 'names no registry'],
    ['docker:///nginx:1', 'names no registry'],
    ['docker://-docker.io/nginx:1', 'names no registry'],
    ['docker://user:password@docker.io/nginx:1', 'not a digest'],
    ['docker://docker.io/nginx', 'neither a tag nor a digest'],
    ['docker://docker.io/Nginx:1', 'not a series of lower-case letters'],
    ['docker://docker.io//nginx:1', 'not a series of lower-case letters'],
    ['docker://docker.io/../nginx:1', 'not a series of lower-case letters'],
    ['docker://docker.io/nginx/:1', 'not a series of lower-case letters'],
    ['docker://docker.io/nginx:', 'not a tag'],
    ['docker://docker.io/nginx:-x', 'not a tag'],
    ['docker://docker.io/nginx:1:2', 'not a tag'],
    ['docker://docker.io/nginx:1?tag=2', 'not a tag'],
    ['docker://docker.io/nginx:1#x', 'not a tag'],
    ['docker://docker.io/nginx:1 --privileged', 'not a tag'],
    ['docker://docker.io/nginx:1\n', 'not a tag'],
    ['docker://docker.io/ngi%6ex:1', 'not a series of lower-case letters'],
    [`docker://docker.io/nginx@sha256:${'0'.repeat(63)}`, 'not a digest'],
    [`docker://docker.io/nginx@${digest}@${digest}`, 'not a digest'],
    [`docker://docker.io/nginx@md5:${'0'.repeat(32)}`, 'not a digest'],
    [`docker://docker.io/${'a'.repeat(250)}:1`, 'longer than'],
  ];
  it.each(bad)('%j is refused: %s', (source, fault) => {
    expect(readContainerReference(source)).toEqual({ ok: false, fault: expect.stringContaining(fault) });
  });
});
