import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../base/system.ts';
import { hiding } from '../../plain-line.ts';
import { GitlabApi, type GitlabProject, isFailure } from './gitlab-api.ts';
import { pipelineNote, pipelineState } from './pipeline-state.ts';
import { apiToken, type Fault, TestGitlab, triggerToken } from './test-gitlab.ts';

let gitlab: TestGitlab;
let url: string;
beforeEach(async () => {
  gitlab = new TestGitlab();
  url = await gitlab.listen();
});
afterEach(() => gitlab.close());

function api(changes: Partial<GitlabProject> = {}): GitlabApi {
  const project = { url, project: 'group/spares', ref: 'main', triggerToken, apiToken, ca: undefined, ...changes };
  return new GitlabApi(project, { clock: systemClock, hide: hiding([triggerToken, apiToken]) });
}

const mine = { BERTH_SPARE_ID: 'spare_1', BERTH_SPARE_ACTION: 'provision' };

describe('a trigger', () => {
  it('starts a pipeline with the variables', async () => {
    const found = await api().trigger({ ...mine, POOL: 'default' });
    expect(found).toMatchObject({ id: 100, status: 'created', webUrl: expect.stringContaining('/pipelines/100') });
    expect(gitlab.pipelines[0]?.variables).toContainEqual({ key: 'BERTH_SPARE_ID', value: 'spare_1' });
  });

  it.each<[string, Fault, object]>([
    [
      'a bad request',
      { status: 400, body: { message: { base: ['No stages'] } } },
      { refused: true, why: '{"base":["No stages"]}' },
    ],
    ['no rights', { status: 403, body: { message: '403 Forbidden' } }, { refused: true, why: '403 Forbidden' }],
    [
      'a body that shows the token',
      { status: 400, body: { error: `bad ${triggerToken}` } },
      { refused: true, why: 'bad ***' },
    ],
    ['too many requests', { status: 429, body: 'Retry later' }, { why: 'answered 429' }],
    ['an error of the server', { status: 500, body: '<html>' }, { perhaps: true, why: 'answered 500' }],
    ['a proxy without a server', { status: 502, body: '' }, { perhaps: true }],
    ['a redirect', { status: 302, body: '' }, { refused: true, why: 'answered 302' }],
    ['201 without a pipeline', { status: 201, body: [] }, { perhaps: true }],
    ['a pipeline without a number', { status: 201, body: { id: '7', status: 'created' } }, { perhaps: true }],
    ['a connection that ends', 'drop', { perhaps: true }],
  ])('that meets %s', async (_, fault, { why = '', ...expected }: { why?: string }) => {
    gitlab.faults.set('POST', fault);
    const found = await api().trigger(mine);
    expect(found).toEqual({ ...expected, why: expect.stringContaining(why) });
    expect(JSON.stringify(found)).not.toContain(triggerToken);
  });

  it.each([
    ['of another token', { triggerToken: 'glptt-wrong' }, '404 Not Found'],
    ['of another branch', { ref: 'gone' }, 'Reference not found'],
  ])('%s is refused', async (_, changes, why) => {
    expect(await api(changes).trigger(mine)).toEqual({ refused: true, why: expect.stringContaining(why) });
  });

  it('to a server that is not there has done nothing', async () => {
    expect(await api({ url: 'http://127.0.0.1:1' }).trigger(mine)).toEqual({ why: expect.stringContaining('REFUSED') });
  });
});

describe('a search', () => {
  const search = (asked = api()) => asked.search(mine, { sinceMs: 0 });

  it('finds the pipeline by its variables, on a later page too', async () => {
    gitlab.pageSizeMax = 2;
    gitlab.add(mine);
    gitlab.add({ ...mine, BERTH_SPARE_ACTION: 'release' });
    for (let i = 0; i < 4; i++) gitlab.add({ BERTH_SPARE_ID: `spare_${i}x` });
    expect(await search()).toMatchObject({ id: 100 });
    expect(gitlab.requests[0]).toContain('source=trigger&updated_after=1970-01-01T00%3A00%3A00.000Z');
  });

  it('finds what a trigger did whose answer was lost', async () => {
    gitlab.faults.set('POST', 'drop');
    expect(isFailure(await api().trigger(mine))).toBe(true);
    expect(await search()).toMatchObject({ id: 100, status: 'created' });
  });

  it('finds nothing', async () => {
    expect(await search()).toBeUndefined();
  });

  it.each<[string, string, Fault, string]>([
    ['may not list', 'GET /pipelines', { status: 403 }, 'answered 403'],
    ['gets no list', 'GET /pipelines', { status: 200, body: {} }, 'did not answer with a list'],
    ['gets half a list', 'GET /pipelines', { status: 200, body: '[{"id":1' }, 'did not answer with a list'],
    ['gets a strange list', 'GET /pipelines', { status: 200, body: [null] }, 'without id or status'],
    ['may not read variables', 'GET /pipelines/100/variables', { status: 403 }, 'answered 403'],
    ['gets no variables', 'GET /pipelines/100/variables', { status: 200, body: 'x' }, 'a list of variables'],
  ])('that %s is a failure, not an absence', async (_, request, fault, why) => {
    gitlab.add({});
    gitlab.faults.set(request, fault);
    expect(await search()).toMatchObject({ why: expect.stringContaining(why) });
  });

  it('passes over a pipeline that was deleted meanwhile', async () => {
    gitlab.add({});
    gitlab.faults.set('GET /pipelines/100/variables', { status: 404 });
    expect(await search()).toBeUndefined();
  });

  it('needs a token that may read', async () => {
    const found = await search(api({ apiToken: triggerToken }));
    expect(found).toMatchObject({ refused: true, why: expect.stringContaining('401 Unauthorized') });
  });

  it('gives up where there are too many', async () => {
    for (let i = 0; i <= 500; i++) gitlab.add({});
    expect(await search()).toMatchObject({ why: expect.stringContaining('more than 500') });
  });
});

it.each<[string, string]>([
  ...['created', 'waiting_for_resource', 'preparing', 'pending', 'running', 'manual', 'scheduled', 'canceling'].map(
    (status) => [status, 'running'] as [string, string],
  ),
  ['success', 'done'],
  ...['failed', 'canceled', 'skipped'].map((status) => [status, 'failed'] as [string, string]),
  ['of_the_future', 'running'],
  ['constructor', 'running'],
])('a pipeline that is %s: %s', async (status, state) => {
  const { id } = gitlab.add(mine, status);
  const found = await api().pipeline(id);
  expect(found).toMatchObject({ status });
  expect(pipelineState(status)).toBe(state);
  expect(pipelineNote(status)).toContain('pipeline');
});
