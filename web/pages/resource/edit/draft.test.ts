import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Kind, resourceDefinitions } from '../../../../src/api/resources/index.ts';
import { draftText, placeOf, readDraft } from './draft.ts';
import { templateOf } from './template.ts';

const text = `kind: instance
metadata:
  name: web
  labels:
    example.com/tier: front
spec:
  cpus: 0
  ports:
    - guestPort: 80
    - guestPort: x
`;

describe('the place of a field', () => {
  it.each([
    ['spec.cpus', 'cpus: 0'],
    ['spec.ports[1].guestPort', 'guestPort: x'],
    ['spec.ports[0]', 'guestPort: 80'],
    ['metadata.labels.example.com/tier', 'example.com/tier: front'],
    ['spec.memoryMiB', 'spec'],
    ['spec.ports[7].guestPort', 'ports'],
    ['nothing', 'kind: instance'],
  ])('%s', (field, found) => {
    const { from, to } = placeOf(text, field);
    expect(text.slice(from, to).trim()).toBe(found);
  });
});

describe('a draft', () => {
  it('has what the text says', () => {
    expect(readDraft(text, 'instance').draft).toMatchObject({ metadata: { name: 'web' }, spec: { cpus: 0 } });
  });

  it.each([
    ['a: [', /./],
    ['- 1', /not a resource/],
    ['kind: host', /must be of kind instance/],
    ['spec: 3', /"spec" must have fields/],
    ['speck: {}', /no field "speck"/],
  ])('is refused: %s', (wrong, message) => {
    const { draft, problems } = readDraft(wrong, 'instance');
    expect(draft).toBeUndefined();
    expect(problems[0]?.message).toMatch(message);
  });

  it('is read as it was written', () => {
    const resource = { metadata: { name: 'a', project: 'p', labels: { x: 'y' } }, spec: { source: 'file:///a' } };
    const written = draftText('image', resource as unknown as Parameters<typeof draftText>[1]);
    expect(readDraft(written, 'image').draft).toEqual(resource);
  });
});

it.each(Object.keys(resourceDefinitions))('the template of a new %s is YAML with a name to fill in', (kind) => {
  expect(parse(templateOf(kind as Kind))).toMatchObject({ kind, metadata: { name: null } });
});
