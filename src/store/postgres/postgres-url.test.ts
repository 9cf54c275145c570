import { expect, it } from 'vitest';
import { parsePostgresUrl } from './postgres-url.ts';

it('says where, without the password, and in which schema', () => {
  expect(parsePostgresUrl('//u:secret@db.example:5433/berth?schema=blue&sslmode=verify-full')).toMatchObject({
    schema: 'blue',
    where: 'db.example:5433/berth',
  });
});

it.each([
  ['//u@db/berth?schemas=blue', 'no parameter "schemas"; there are: schema, '],
  ['//u@db/berth?sslmode=require', 'write verify-full'],
  ['//u@db/berth?schema=Blue', 'small letters'],
  ['//u@db1,db2/berth', 'one host'],
  ['//u:secret@db/berth?sslrootcert=/not/there.pem', 'sslrootcert: cannot read /not/there.pem'],
  ['//u@db/berth?sslmode=disable&sslrootcert=/ca.pem', 'cannot be combined with sslrootcert'],
  ['//u@db/berth?sslcert=/own.pem', 'sslcert and sslkey belong together'],
  ['db/berth', 'is written postgres://'],
])('refuses %s', (rest, message) => {
  expect(() => parsePostgresUrl(rest)).toThrow(message);
});
