import { describe, expect, it } from 'vitest';
import { passTar } from './tar-gate.ts';

interface Entry {
  readonly name: string;
  readonly type?: string;
  readonly text?: string;
  readonly size?: number;
}

/** As git writes it: the name in the header, the text after it in blocks. */
function entry({ name, type = '0', text = '', size = text.length }: Entry): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0, 'latin1');
  header.write(`0000644\0${size.toString(8).padStart(11, '0').padStart(27, '0')}\0`, 100, 'latin1');
  header.write(type, 156, 'latin1');
  return Buffer.concat([header, Buffer.from(text), Buffer.alloc((512 - (text.length % 512)) % 512)]);
}

const pax = (...records: string[]) =>
  entry({
    name: 'x.paxheader',
    type: 'x',
    text: records
      .map((record) => `${record.length + 4} ${record}\n`.replace(/^\d+/, String(record.length + 4)))
      .join(''),
  });
const end = Buffer.alloc(1024);
const limits = { bytesMax: 100_000, entriesMax: 10 };

async function passed(pieces: readonly Buffer[], size = 1_000_000): Promise<Buffer> {
  const all = Buffer.concat(pieces);
  const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.subarray(i * size, (i + 1) * size));
  const output: Uint8Array[] = [];
  const input = (async function* () {
    yield* await Promise.resolve(chunks);
  })();
  for await (const piece of passTar(input, limits, 'a')) output.push(piece);
  return Buffer.concat(output);
}

describe('the gate for archives', () => {
  const files = [entry({ name: 'work/', type: '5' }), entry({ name: 'work/a', text: 'x'.repeat(700) })];

  it.each([[1], [511], [512], [513], [1_000_000]])('passes files as they are, in pieces of %i bytes', async (size) => {
    const global = entry({ name: 'pax_global_header', type: 'g', text: '12 comment=x\n' });
    expect(await passed([global, ...files, end], size)).toEqual(Buffer.concat([...files, end]));
  });

  it('writes long names and targets as GNU does', async () => {
    const name = 'n'.repeat(60);
    const link = 'l'.repeat(60);
    const target = entry({ name: 'x.data', type: '2' });
    const output = await passed([pax(`path=work/${name}`, `linkpath=${link}`), target, end]);
    const types = [0, 1024, 2048].map((at) => output.toString('latin1', at + 156, at + 157));
    expect(types).toEqual(['L', 'K', '2']);
    expect(output.toString('latin1', 512, 512 + 66)).toBe(`work/${name}\0`);
    expect(output.toString('latin1', 1536, 1536 + 61)).toBe(`${link}\0`);
  });

  it.each([
    ['a path that leads up', [entry({ name: 'work/../x' })], '".."'],
    ['a path elsewhere', [entry({ name: '/etc/passwd' })], 'outside'],
    ['a long path that leads up', [pax('path=work/../../x'), entry({ name: 'y' })], '".."'],
    ['too many entries', Array.from({ length: 11 }, (_, i) => entry({ name: `work/${i}` })), 'more than 10 files'],
    ['too many bytes', [entry({ name: 'work/a', size: 100_000 })], 'repositoryMiBMax'],
    ['a size beyond the header', [pax('size=9000000000'), entry({ name: 'work/a' })], 'too large'],
    ['a record without end', [entry({ name: 'x', type: 'x', size: 1_000_000 })], 'too long'],
  ])('refuses %s', async (_, pieces, why) => {
    await expect(passed([...pieces, end])).rejects.toMatchObject({
      code: 'RepositoryRefused',
      message: expect.stringContaining(why),
    });
  });

  it.each([
    ['without its end', [entry({ name: 'work/a' })]],
    ['that ends inside a file', [entry({ name: 'work/a', size: 600 })]],
  ])('knows an archive %s', async (_, pieces) => {
    await expect(passed(pieces)).rejects.toMatchObject({ code: 'Internal' });
  });
});
