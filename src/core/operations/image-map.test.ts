import { describe, expect, it } from 'vitest';
import { commitPlan, testCache, testContext, testImage } from '../testing.ts';
import { createPlainResource } from './plain-resource.ts';
import { applyImageMap, type WantedImageMap } from './image-map.ts';

const ctx = testContext();

/** Images by name with their aliases, as the map's file would give them. */
function mapOf(images: Readonly<Record<string, readonly string[]>>): WantedImageMap {
  return {
    images: Object.entries(images).map(([name, aliases]) => ({
      name,
      spec: { ...testImage().spec, aliases: [...aliases] },
    })),
    sizes: [{ name: 'small', spec: { cpus: 1, memoryMiB: 512 } }],
  };
}

function fleet(images: Readonly<Record<string, readonly string[]>> = {}) {
  const cache = testCache([]);
  const apply = (wanted: Readonly<Record<string, readonly string[]>>): number => {
    const { plan } = applyImageMap(cache, mapOf(wanted), ctx);
    commitPlan(cache, plan);
    return plan.changes.length;
  };
  apply(images);
  const leadsTo = (word: string): string | undefined => cache.imageByName(word)?.value.metadata.name;
  return { cache, apply, leadsTo };
}

describe('the image map', () => {
  it('makes images and sizes in one Plan, and nothing the second time', () => {
    const { apply, leadsTo, cache } = fleet();
    expect(apply({ a: ['default'], b: [] })).toBe(2); // the size is there from before
    expect(leadsTo('default')).toBe('a');
    expect(cache.get('size', 'sizes/small')?.value.spec).toEqual({ cpus: 1, memoryMiB: 512 });
    expect(cache.get('image', 'images/a')?.value.metadata.labels).toEqual({ 'berth.dev/source': 'image-map' });
    expect(apply({ a: ['default'], b: [] })).toBe(0);
  });

  it.each([
    ['forwards', { a: ['old'], b: ['default'] }],
    ['and back, in the other order', { b: ['default'], a: ['old'] }],
  ])('moves an alias from one of its images to another, %s', (_, wanted) => {
    const { apply, leadsTo } = fleet({ a: ['default', 'old'], b: [] });
    apply(wanted);
    expect([leadsTo('default'), leadsTo('old')]).toEqual(['b', 'a']);
    apply({ a: ['default', 'old'], b: [] });
    expect([leadsTo('default'), leadsTo('old')]).toEqual(['a', 'a']);
  });

  it('lets two images change their aliases for each other', () => {
    const { apply, leadsTo } = fleet({ a: ['x'], b: ['y'] });
    apply({ a: ['y'], b: ['x'] });
    expect([leadsTo('x'), leadsTo('y')]).toEqual(['b', 'a']);
  });

  it('turns an alias into an image', () => {
    const { apply, leadsTo } = fleet({ a: ['x'] });
    apply({ a: [], x: [] });
    expect(leadsTo('x')).toBe('x');
  });

  it('keeps an image that it no longer names, without its aliases, and then leaves it alone', () => {
    const { apply, leadsTo, cache } = fleet({ a: ['default'] });
    apply({ b: ['default'] });
    expect([leadsTo('default'), leadsTo('a')]).toEqual(['b', 'a']);
    expect(cache.get('image', 'images/a')?.value).toMatchObject({ metadata: { labels: {} }, spec: { aliases: [] } });
    expect(apply({ b: ['default'] })).toBe(0);
  });

  it("refuses an alias that an operator's image has, whole, and says whose it is", () => {
    const { cache, apply } = fleet();
    const spec = { ...testImage().spec, aliases: ['default'] };
    commitPlan(cache, createPlainResource(cache, 'image', { project: '', name: 'mine', labels: {}, spec }, ctx).plan);
    expect(() => apply({ a: [], b: ['default'] })).toThrow(
      'the image map wants "default" to mean image "b", but it already means image "mine", which is not of the map',
    );
    expect(() => apply({ default: [] })).toThrow(/already means image "mine"/);
    expect(() => apply({ a: ['mine'] })).toThrow(/already means image "mine"/);
    expect(cache.get('image', 'images/a')).toBeUndefined();
  });

  it("takes over an operator's image of the same name, with its labels", () => {
    const { cache, apply, leadsTo } = fleet();
    const input = { project: '', name: 'mine', labels: { team: 'ci' }, spec: testImage().spec };
    commitPlan(cache, createPlainResource(cache, 'image', input, ctx).plan);
    apply({ mine: ['default'] });
    expect(leadsTo('default')).toBe('mine');
    expect(cache.get('image', 'images/mine')?.value.metadata.labels).toEqual({
      team: 'ci',
      'berth.dev/source': 'image-map',
    });
  });
});

describe('an image made by hand', () => {
  it('may not bear a name that is an alias of another', () => {
    const { cache } = fleet({ a: ['x'] });
    const input = { project: '', name: 'x', labels: {}, spec: testImage().spec };
    expect(() => createPlainResource(cache, 'image', input, ctx)).toThrow('"x" already means image "a"');
  });
});
