// Webhooks of forges: the signature is checked over the raw bytes, then the body is read, jobs are decided and stored, and
// only then does the forge get its answer. Nothing of an unsigned body is looked at.

import { createHash } from 'node:crypto';
import { ApiError } from '../../../api/errors.ts';
import { hookRoutes as routes } from '../../../api/routes/hooks.ts';
import type { Logger } from '../../../base/log.ts';
import {
  type ForgeEvent,
  type ForgeEventName,
  identityOf,
  readEvent,
} from '../../../core/operations/jobs/webhook-event.ts';
import { assertMay } from '../../../core/access/may.ts';
import type { AskedHead } from '../../../core/operations/jobs/webhook-order.ts';
import { decideWebhook, type WebhookDecision } from '../../../core/operations/jobs/webhook.ts';
import { type Decider, forProject } from '../../decide.ts';
import { trailOf } from '../../audit/trail.ts';
import type { Caller } from '../../http/caller.ts';
import { decideFor } from '../../http/on-behalf.ts';
import { parseJsonBody } from '../../http/json-body.ts';
import type { Answer, Route, RouteRequest } from '../../http/route.ts';
import { bind } from '../../http/routes/bind.ts';
import { BoundedBodies } from './bounded-body.ts';
import type { ConfiguredHook } from './forge-config.ts';
import { forgeHeaders, isSigned } from './signature.ts';

export interface HookParts {
  readonly decider: Decider;
  readonly hooks: readonly ConfiguredHook[];
  readonly log: Logger;
  /** The commit that a branch or pull request is at; undefined: not known. */
  readonly askHead: (hook: ConfiguredHook, event: ForgeEvent) => Promise<string | undefined>;
}

export function hookRoutes(parts: HookParts): Route[] {
  const hooks = new Map(parts.hooks.map((hook) => [hook.name, hook]));
  const bodies = new BoundedBodies();
  return [
    bind(routes.deliver, ({ params, body }, { headers, caller }) =>
      bodies.read(body, {
        length: headers['content-length'],
        use: async (bytes) => {
          const hook = hooks.get(params.hook);
          // The same work for a hook that is not there: the time does not tell which ones are.
          const signed = isSigned(bytes, hook ?? unknownHook, headers);
          if (hook === undefined) throw new ApiError('NotFound', `there is no hook "${params.hook.slice(0, 80)}"`);
          if (!signed) throw refused(hook);
          return deliver(parts, hook, { headers, bytes, caller: asHook(caller, hook) });
        },
      }),
    ),
  ];
}

const unknownHook = { forge: 'github', secret: Buffer.alloc(32) } as const;

function refused({ name, forge }: ConfiguredHook): ApiError {
  const header = forge === 'github' ? 'X-Hub-Signature-256' : 'X-Forgejo-Signature';
  return new ApiError(
    'Unauthenticated',
    `${header} is missing, or not of this body with the secret of hook "${name}"; set the same secret on both sides`,
  );
}

/** What a signed delivery asks for, its hook asks for. */
function asHook(sender: Caller, { name, project }: ConfiguredHook): Caller {
  const caller: Caller = { ...sender, principal: { kind: 'intake', name, project }, face: 'forge' };
  trailOf(sender)?.continueAs(caller, { verb: 'create', kind: 'job', project });
  return caller;
}

interface Delivered {
  readonly caller: Caller;
  readonly headers: RouteRequest['headers'];
  readonly bytes: Buffer;
}

async function deliver(parts: HookParts, hook: ConfiguredHook, { headers, bytes, caller }: Delivered): Promise<Answer> {
  const names = forgeHeaders[hook.forge];
  const name = headers[names.event] ?? '';
  if (name === 'ping') return answer(200, { jobs: [], reason: 'a ping asks for nothing' });
  if (!isKnown(name)) return { status: 204, bytes: nothing() };
  const id = headers[names.delivery] ?? '';
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(id))
    throw new ApiError('InvalidRequest', `${names.delivery} must be the id of the delivery`, { field: names.delivery });
  const event = readEvent(hook.forge, name, parseJsonBody(utf8Of(bytes)));
  if ('ignored' in event) return answer(200, { jobs: [], reason: event.ignored });
  const decision = await decide(parts, hook, { id, event, caller });
  const { outcome, jobs, reason } = decision;
  parts.log.info('webhook delivered', { hook: hook.name, delivery: id, event: name, outcome, jobs, reason });
  return answer(outcome === 'created' ? 202 : 200, { jobs, ...(reason === undefined ? {} : { reason }) });
}

function isKnown(name: string): name is ForgeEventName {
  return name === 'push' || name === 'pull_request';
}

function answer(status: number, json: { readonly jobs: readonly string[]; readonly reason?: string }): Answer {
  return { status, json };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Throws `InvalidRequest` where the bytes are not UTF-8. A byte order mark is no JSON, and is refused as that. */
function utf8Of(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new ApiError('InvalidRequest', 'the body is not UTF-8', { field: 'body', cause });
  }
}

/** More jobs of the branch may arrive while the forge is asked; then it is asked again. */
const asksMax = 3;

async function decide(
  { decider, askHead }: HookParts,
  hook: ConfiguredHook,
  { id, event, caller }: { readonly id: string; readonly event: ForgeEvent; readonly caller: Caller },
): Promise<WebhookDecision> {
  const eventKey = createHash('sha256').update(identityOf(hook.name, event)).digest('hex');
  let head: AskedHead | undefined;
  for (let asked = 0; ; asked++) {
    const delivery = { id, eventKey, event, ...(head === undefined ? {} : { head }) };
    const patient = asked < asksMax;
    const { decision } = await decideFor(forProject(hook.project, decider), { caller }, (snapshot, ctx) => {
      assertMay(snapshot, caller.principal, { verb: 'create', resource: 'job', project: hook.project });
      return decideWebhook(snapshot, { hook, delivery, patient }, ctx);
    });
    if (decision.outcome !== 'needsHead') return decision;
    head = { sha: await askHead(hook, event), seen: decision.seen ?? new Set() };
  }
}
