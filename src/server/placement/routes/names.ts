// /resource_classes and /traits.

import { badRequest, notFound } from '../../../core/operations/placement/fault.ts';
import {
  createClass,
  deleteClass,
  deleteTrait,
  ensureName,
  isKnownName,
  knownNames,
  renameClass,
  unknownClass,
  usersOf,
} from '../../../core/operations/placement/names.ts';
import { commit } from '../commit.ts';
import { assertJsonType, checkQuery, type Exchange, jsonBody, queryValue, type Reply } from '../exchange.ts';
import { schemaFault } from '../wire/json-schema.ts';
import { classBody, customTrait, traitQuery } from '../wire/schemas.ts';
import { modified } from './providers.ts';
import type { PlacementRoute } from './route.ts';

export const nameRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: '/resource_classes', handle: listClasses, since: 2 },
  { method: 'POST', path: '/resource_classes', handle: addClass, since: 2, takes: 'json' },
  { method: 'GET', path: '/resource_classes/:name', handle: showClass, since: 2 },
  { method: 'PUT', path: '/resource_classes/:name', handle: putClass, since: 2, takes: 'json', takesUntil: 6 },
  { method: 'DELETE', path: '/resource_classes/:name', handle: removeClass, since: 2 },
  { method: 'GET', path: '/traits', handle: listTraits, since: 6 },
  { method: 'GET', path: '/traits/:name', handle: showTrait, since: 6, acceptsAll: true },
  { method: 'PUT', path: '/traits/:name', handle: putTrait, since: 6 },
  { method: 'DELETE', path: '/traits/:name', handle: removeTrait, since: 6 },
];

function nameOf({ params }: Exchange): string {
  return params['name'] ?? '';
}

function shownClass({ request }: Exchange, name: string): object {
  return { name, links: [{ rel: 'self', href: `${request.mount}/resource_classes/${name}` }] };
}

function listClasses(exchange: Exchange): Reply {
  const names = knownNames(exchange.snapshot, 'class');
  return {
    status: 200,
    json: { resource_classes: names.map((name) => shownClass(exchange, name)) },
    ...modified(exchange.version, 'now'),
  };
}

function showClass(exchange: Exchange): Reply {
  const name = nameOf(exchange);
  if (!isKnownName(exchange.snapshot, 'class', name)) throw unknownClass(name);
  return { status: 200, json: shownClass(exchange, name), ...modified(exchange.version, 'now') };
}

async function addClass(exchange: Exchange): Promise<Reply> {
  const { name } = jsonBody<{ readonly name: string }>(exchange, classBody);
  await commit(exchange, (snapshot, ctx) => createClass(snapshot, name, ctx));
  return { status: 201, location: `${exchange.request.mount}/resource_classes/${name}` };
}

/** Until 1.6 it renames; from 1.7 it creates. */
async function putClass(exchange: Exchange): Promise<Reply> {
  const name = nameOf(exchange);
  if (exchange.version >= 7) {
    const fault = schemaFault({ name }, classBody);
    if (fault !== undefined) throw badRequest(`JSON does not validate: ${fault}`);
    const { created } = await commit(exchange, (snapshot, ctx) => ensureName(snapshot, 'class', name, ctx));
    return { status: created ? 201 : 204, location: `${exchange.request.mount}/resource_classes/${name}` };
  }
  assertJsonType(exchange.request);
  const { name: to } = jsonBody<{ readonly name: string }>(exchange, classBody);
  await commit(exchange, (snapshot, ctx) => renameClass(snapshot, { from: name, to }, ctx));
  return { status: 200, json: shownClass(exchange, to) };
}

async function removeClass(exchange: Exchange): Promise<Reply> {
  await commit(exchange, (snapshot) => deleteClass(snapshot, nameOf(exchange)));
  return { status: 204 };
}

function listTraits(exchange: Exchange): Reply {
  checkQuery(exchange, traitQuery);
  const { snapshot, version } = exchange;
  const asked = queryValue(exchange, 'name');
  const wanted = asked === undefined ? () => true : traitFilter(asked);
  const associated = queryValue(exchange, 'associated')?.toLowerCase();
  if (associated !== undefined && associated !== 'true' && associated !== 'false')
    throw badRequest('The query parameter "associated" only accepts "true" or "false"');
  const traits = knownNames(snapshot, 'trait').filter(
    (name) =>
      wanted(name) &&
      (associated === undefined || usersOf(snapshot, 'trait', name).size > 0 === (associated === 'true')),
  );
  return { status: 200, json: { traits }, ...modified(version, 'now') };
}

/** `in:A,B` or `startswith:P`; with another word, as in the original, everything. */
function traitFilter(text: string): (name: string) => boolean {
  const colon = text.indexOf(':');
  if (colon < 0)
    throw badRequest(
      `Badly formatted name parameter. Expected name query string parameter in form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "${text}"`,
    );
  const [operator, value] = [text.slice(0, colon), text.slice(colon + 1)];
  const names = new Set(value.split(','));
  if (operator === 'in') return (name) => names.has(name);
  return (name) => operator !== 'startswith' || name.startsWith(value);
}

function showTrait({ snapshot, params, version }: Exchange): Reply {
  const name = params['name'] ?? '';
  if (!isKnownName(snapshot, 'trait', name)) throw notFound(`No such trait(s): ${name}.`);
  return { status: 204, ...modified(version, 'now') };
}

async function putTrait(exchange: Exchange): Promise<Reply> {
  const name = nameOf(exchange);
  if (schemaFault(name, customTrait) !== undefined)
    throw badRequest(
      'The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"',
    );
  const { created } = await commit(exchange, (snapshot, ctx) => ensureName(snapshot, 'trait', name, ctx));
  const location = `${exchange.request.mount}/traits/${name}`;
  return { status: created ? 201 : 204, location, ...modified(exchange.version, 'now') };
}

async function removeTrait(exchange: Exchange): Promise<Reply> {
  await commit(exchange, (snapshot) => deleteTrait(snapshot, nameOf(exchange)));
  return { status: 204 };
}
