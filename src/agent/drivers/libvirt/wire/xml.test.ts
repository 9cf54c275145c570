import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { element, elementsAt, readXml, writeXml, XmlError, type XmlElement } from './xml.ts';

it.each([
  ['an empty element', element('panic', { model: 'isa' }), `<panic model='isa'/>`],
  ['text', element('name', {}, 'a'), '<name>a</name>'],
  ['numbers', element('memory', { unit: 'MiB' }, 64), `<memory unit='MiB'>64</memory>`],
  [
    'elements in order',
    element('os', {}, element('type', {}, 'hvm'), element('boot')),
    '<os><type>hvm</type><boot/></os>',
  ],
  ['what is undefined: not at all', element('disk', { snapshot: undefined }, undefined), '<disk/>'],
  [
    'every special character',
    element('a', { b: `<&'">` }, `<&'">`),
    `<a b='&lt;&amp;&apos;&quot;&gt;'>&lt;&amp;&apos;&quot;&gt;</a>`,
  ],
])('writes %s', (_, written, text) => {
  expect(writeXml(written)).toBe(text);
});

it.each(['\0', '\n', '\t', '\x1b', '\x7f', '\x85', '\uffff', '\ud800'])('refuses to write %j', (character) => {
  expect(() => writeXml(element('a', { b: `x${character}` }))).toThrow(XmlError);
  expect(() => writeXml(element('a', {}, `x${character}`))).toThrow(XmlError);
});

it.each(['', 'a b', 'a>', '1a', 'a:b:c', 'a/'])('refuses the name "%s"', (name) => {
  expect(() => element(name)).toThrow(XmlError);
  expect(() => element('a', { [name]: '' })).toThrow(XmlError);
});

it('reads what it has written', () => {
  const text = fc
    .string({ unit: 'grapheme' })
    .filter((each) => !/[\x00-\x1f\x7f-\x9f\ufffe\uffff]|\p{Surrogate}/u.test(each));
  const name = fc.stringMatching(/^[a-z_][a-z0-9_.-]{0,8}$/);
  const { tree } = fc.letrec<{ tree: XmlElement }>((tie) => ({
    tree: fc
      .tuple(
        name,
        fc.dictionary(name, text, { noNullPrototype: true }),
        fc.oneof(
          { depthSize: 'small' },
          text.map((each) => (each === '' ? [] : [each])),
          fc.array(tie('tree'), { maxLength: 3 }),
        ),
      )
      .map(([tag, attributes, children]) => element(tag, attributes, ...children)),
  }));
  fc.assert(
    fc.property(tree, (written) => {
      expect(readXml(writeXml(written))).toEqual(written);
    }),
  );
});

it('reads what libvirt answers: declaration, comments, line breaks, both quotes, entities by number', () => {
  const read = readXml(`<?xml version="1.0" encoding="UTF-8"?>
<!-- made by libvirt -->
<domain type='qemu' id="1">
  <!-- <metadata/> -->
  <metadata>
    <berth:instance xmlns:berth="urn:berth:instance:1" id='a&#x26;b&#33;'/>
  </metadata>
</domain>
`);
  expect(elementsAt(read, 'metadata', 'berth:instance').map(({ attributes }) => attributes)).toEqual([
    { 'xmlns:berth': 'urn:berth:instance:1', id: 'a&b!' },
  ]);
  expect(elementsAt(read, 'devices', 'graphics')).toEqual([]);
});

it.each([
  ['nothing', ''],
  ['two elements', '<a/><b/>'],
  ['text around it', 'x<a/>'],
  ['an end that is missing', '<a><b></b>'],
  ['an end of another', '<a></b>'],
  ['an attribute twice', `<a b='1' b='2'/>`],
  ['an attribute without quotes', '<a b=1/>'],
  ['a document type', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
  ['an entity of its own', '<a>&b;</a>'],
  ['a bare ampersand', '<a>b & c</a>'],
  ['a code point that is none', '<a>&#x110000;</a>'],
  ['CDATA', '<a><![CDATA[b]]></a>'],
  ['a hundred elements in one another', `${'<a>'.repeat(100)}${'</a>'.repeat(100)}`],
])('refuses to read %s', (_, text) => {
  expect(() => readXml(text)).toThrow(XmlError);
});
