import { describe, expect, it } from 'vitest';
import { resourceDefinitions } from '../resources/index.ts';
import { pathOf } from './user-client.ts';

describe('the user client', () => {
  it.each(Object.values(resourceDefinitions))('knows the path of $plural', ({ kind, plural }) =>
    expect(pathOf(kind)).toBe(`/v1/${plural}`),
  );
});
