// Tokens, roles and bindings for tests of access.

import type { RoleRules } from '../../api/access.ts';
import type { Binding, BindingSpec } from '../../api/resources/binding.ts';
import type { Metadata } from '../../api/resources/metadata.ts';
import type { Role } from '../../api/resources/role.ts';
import type { Token, TokenSpec } from '../../api/resources/token.ts';
import type { Principal } from './principal.ts';

function metadata(name: string, prefix: string, changes: Partial<Metadata> = {}): Metadata {
  const id = `${prefix}_${name.replaceAll('-', '').padStart(26, '0')}`;
  return { id, name, project: '', revision: 0, generation: 1, labels: {}, createdAtMs: 0, ...changes };
}

export function testToken(name: string, spec: Partial<TokenSpec> = {}, meta: Partial<Metadata> = {}): Token {
  return {
    kind: 'token',
    schemaVersion: 1,
    metadata: metadata(name, 'tok', meta),
    spec: { description: '', ...spec },
    status: { tokenId: name.replaceAll('-', '').padStart(10, '0') },
  };
}

export function testRole(name: string, rules: RoleRules): Role {
  const spec = { description: '', rules };
  return { kind: 'role', schemaVersion: 1, metadata: metadata(name, 'role'), spec, status: {} };
}

export function testBinding(
  name: string,
  spec: Omit<BindingSpec, 'project'> & { readonly project?: string | undefined },
): Binding {
  const { project, ...rest } = spec;
  const whole = project === undefined ? rest : { ...rest, project };
  return { kind: 'binding', schemaVersion: 1, metadata: metadata(name, 'bind'), spec: whole, status: {} };
}

/** Who bears a token, or a `testToken` of this name. */
export function bearerOf(token: Token | string): Principal & { readonly kind: 'token' } {
  const { metadata: head, status } = typeof token === 'string' ? testToken(token) : token;
  return { kind: 'token', name: head.name, uid: head.id, tokenId: status.tokenId };
}

/** As the `owner` of tokens that it makes. */
export function ownerOf(name: string): NonNullable<TokenSpec['owner']> {
  return { name, id: bearerOf(name).uid };
}
