import { expect, it } from 'vitest';
import type { Webhook } from '../../../api/resources/webhook.ts';
import type { WebhookProgress } from '../../state/records.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { testCache, testContext } from '../../testing.ts';
import { newMetadata } from '../create.ts';
import { writeProgress } from './webhook-progress.ts';

const metadata = newMetadata('hook_1', { project: 'p', name: 'news', labels: {}, spec: undefined }, testContext());
const spec = {
  description: '',
  url: 'https://x.example/',
  events: ['*'],
  secrets: [],
  allProjects: false,
  paused: false,
};
const webhook: Webhook = { kind: 'webhook', schemaVersion, metadata, spec, status: { asked: [] } };

function progress(revision: number, webhookId = 'hook_1'): WebhookProgress {
  return {
    ...{ kind: 'webhookProgress', project: 'p', name: 'news', webhookId },
    ...{ revision, asked: 0, pending: [], delivered: [] },
  };
}

/** The webhook at revision 1, its progress at revision 2. */
const cache = testCache([webhook, progress(10)]);

it.each([
  ['over the revision that it knows', progress(20), 2, true],
  ['not over another revision', progress(20), 1, false],
  ['not for a webhook that is another by now', progress(20, 'hook_2'), 2, false],
] as const)('progress is written %s', (_, next, ifRevision, written) => {
  const decision = writeProgress(cache, { progress: next, ifRevision });
  expect(decision).toMatchObject({ written, revision: 2 });
  expect(decision.plan.changes.map((change) => change.ifRevision)).toEqual(written ? [2] : []);
});
