// Tokens, roles and bindings for tests.

import type { RoleRules } from '../../api/access.ts';
import type { Binding, BindingSpec } from '../../api/resources/binding.ts';
import type { Metadata } from '../../api/resources/metadata.ts';
import type { Role } from '../../api/resources/role.ts';
import type { Token, TokenSpec } from '../../api/resources/token.ts';
import type { Principal } from './principal.ts';

function metadata(name: string, prefix: string): Metadata {
  const id = `${prefix}_${name.replaceAll('-', '').padStart(26, '0')}`;
  return { id, name, project: '', revision: 0, generation: 1, labels: {}, createdAtMs: 0 };
}

export function testToken(name: string, spec: Partial<TokenSpec> = {}): Token {
  return {
    kind: 'token',
    schemaVersion: 1,
    metadata: metadata(name, 'tok'),
    spec: { description: '', ...spec },
    status: { tokenId: name.replaceAll('-', '').padStart(10, '0') },
  };
}

/** Who bears a `testToken` of this name. */
export function bearerOf(name: string): Principal & { readonly kind: 'token' } {
  const { metadata: head, status } = testToken(name);
  return { kind: 'token', name, uid: head.id, tokenId: status.tokenId };
}

/** As the `owner` of tokens that it makes. */
export function ownerOf(name: string): NonNullable<TokenSpec['owner']> {
  return { name, id: bearerOf(name).uid };
}

export function testRole(name: string, rules: RoleRules): Role {
  return {
    kind: 'role',
    schemaVersion: 1,
    metadata: metadata(name, 'role'),
    spec: { description: '', rules },
    status: {},
  };
}

export function testBinding(name: string, spec: BindingSpec): Binding {
  return { kind: 'binding', schemaVersion: 1, metadata: metadata(name, 'bind'), spec, status: {} };
}
