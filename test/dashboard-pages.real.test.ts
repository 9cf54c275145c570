// Pages of the dashboard about jobs, plans and the rest, in a real browser against a real server with one host. Every test fails on an error
// of the console, a refused style or script, or an unexpected answer.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WarmPoolSpec } from '../src/api/resources/warm-pool.ts';
import type { WorkloadSpec } from '../src/api/resources/workload.ts';
import { dashboardBrowser, noBrowser } from './dashboard-browser.ts';
import { type Fleet, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;
const browser = dashboardBrowser();

const script = [
  'echo before',
  'echo ::group::Build <b>it</b>',
  'echo compiling \u001b[31mred\u001b[0m \u001b[38;2;10;200;30mgreen\u001b[0m',
  'echo \u001b]0;planted\u0007hidden title',
  'echo <img src=x onerror="document.title=1"> \u202egnp.exe',
  'echo ::endgroup::',
  ...Array.from({ length: 400 }, (_, i) => `echo line ${i}`),
  'echo bad news >&2',
  'exit 3',
].join('\n');

beforeAll(async () => {
  if (noBrowser) return;
  directory = await mkdtemp(join(tmpdir(), 'berth-dashboard-'));
  fleet = await startFleet(directory, { drivers: ['fake'] });
  const { client } = fleet;
  await client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'https://images.example/tiny.qcow2', defaults: { cpus: 1, memoryMiB: 64 } },
  });
  await client.create('job', { metadata: { name: 'build' }, spec: { image: 'tiny', script } });
  await client.create('instance', { metadata: { name: 'web' }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
  const template = { labels: {}, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } };
  await client.create('workload', {
    metadata: { name: 'shop' },
    // Its owner gives a part of the template; the rest has defaults.
    spec: { replicas: 2, strategy: { minHealthyMs: 0 }, template } as unknown as Partial<WorkloadSpec>,
  });
  await fleet.ready('web');
});
afterAll(async () => {
  if (noBrowser) return;
  for (const { metadata } of (await fleet.client.list('job')).items) await fleet.client.delete('job', metadata.name);
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

const enter = (path = ''): Promise<void> => browser.enter(fleet, path);

describe.skipIf(noBrowser !== undefined)(`jobs in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('shows how a job ended, and its log with colours, as text', async () => {
    await enter('/jobs/build');
    const { page } = browser;
    await page.getByText('Failed', { exact: true }).first().waitFor();
    await page.getByRole('cell', { name: /failure, exit code 3/ }).waitFor();
    await page.getByRole('link', { name: /^log/ }).click();
    const log = page.getByRole('region', { name: 'Log' });
    await page.locator('[data-log=ended]').waitFor();
    await log.getByText('bad news').waitFor(); // its end comes first
    await log.press('Home');
    await log.getByText('red', { exact: true }).waitFor();
    expect(await log.getByText('green', { exact: true }).getAttribute('style')).toContain('rgb(10, 200, 30)');
    expect(await log.locator('img').count()).toBe(0);
    expect(await log.textContent()).toContain('⟨U+202E⟩gnp.exe');
    expect(await page.title()).toContain('build');
  });

  it('folds, searches, and links to lines', async () => {
    await enter('/jobs/build?tab=log');
    const { page } = browser;
    const log = page.getByRole('region', { name: 'Log' });
    await page.locator('[data-log=ended]').waitFor();
    await page.getByRole('button', { name: 'Fold all' }).click();
    await log.getByText('compiling').waitFor({ state: 'detached' });
    await page.getByLabel('Search').fill('GREEN');
    await page.getByText('1 of 1').waitFor();
    await log.getByText('compiling').waitFor(); // its fold opens
    await page.getByLabel('Search').fill('line 39');
    await page.getByText('1 of 11').waitFor(); // 39, and 390 to 399
    await page.getByLabel('Search').press('Shift+Enter');
    await page.getByText('11 of 11').waitFor();
    await log.getByText('line 399').waitFor();
    await page.getByRole('link', { name: 'Line 406', exact: true }).click();
    expect(new URL(page.url()).hash).toBe('#L406');
    await page.goto(`${fleet.url}/ui/jobs/build?tab=log#L200-L201`);
    await page.reload();
    await log.getByText('line 194', { exact: true }).waitFor();
  });

  it('downloads the log as it is stored, and as text', async () => {
    await enter('/jobs/build?tab=log');
    const { page } = browser;
    await page.locator('[data-log=ended]').waitFor();
    const saved = async (name: string): Promise<string> => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByText(name).click()]);
      return readFile(await download.path(), 'utf8');
    };
    expect(await saved('Download text')).toContain('compiling red green\nhidden title\n');
    expect(await saved('Download raw')).toMatch(/^\S+Z stdout F before\n/);
  });

  it('cancels and retries a job, and compares durations', async () => {
    await fleet.client.create('job', {
      metadata: { name: 'long' },
      spec: { image: 'tiny', script: 'echo on\nsleep 1000' },
    });
    await enter('/jobs/long?tab=log');
    const { page } = browser;
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('region', { name: 'Log' }).getByText('on', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('heading', { level: 1, name: /Job long-/ }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
    await page.goto(`${fleet.url}/ui/jobs`);
    await page.getByRole('button', { name: 'Show durations' }).click();
    await page.getByRole('img', { name: /Durations of tiny/ }).waitFor();
  });

  it.each(['/jobs?show=durations', '/jobs/build', '/jobs/build?tab=log'])(
    'has no serious fault for people who cannot see or use a mouse: %s',
    async (path) => {
      await enter(path);
      await browser.page.locator('[data-log=ended], [data-standing=live]').first().waitFor();
      expect(await browser.accessibilityFaultsInAllLooks()).toEqual([]);
    },
  );
});

describe.skipIf(noBrowser !== undefined)(`plans in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  const accept = (): void => void browser.page.on('dialog', (dialog) => void dialog.accept());

  it('shows a drain before and after, applies it by its hash, shows how far it is, and ends it', async () => {
    await enter('/hosts/h1');
    const { page } = browser;
    accept();
    await page.getByRole('link', { name: 'Drain …' }).click();
    const happens = page.getByRole('table', { name: 'What happens' });
    await happens.getByRole('row', { name: /web/ }).getByText('cannot move').waitFor();
    await page.getByRole('table', { name: 'Before and after' }).getByRole('row', { name: /N-1/ }).waitFor();
    const hash = await page.locator('[data-plan]').getAttribute('data-plan');
    await page.getByText(`berth host drain h1 --apply ${hash}`).waitFor();
    expect(await browser.accessibilityFaultsInAllLooks()).toEqual([]);
    await page.getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByText('Host h1 is being drained.').waitFor();
    await page.getByRole('table', { name: 'What leaves host h1' }).getByRole('row', { name: /web/ }).waitFor();
    expect(await browser.accessibilityFaults()).toEqual([]);
    await page.getByRole('button', { name: /End the drain|Open the host/ }).click();
    await page.getByRole('region', { name: 'Under way' }).waitFor({ state: 'detached' });
  });

  it('plans and applies a resize', async () => {
    await enter('/instances/web');
    const { page } = browser;
    accept();
    await page.getByRole('link', { name: 'Resize …' }).click();
    await page.getByRole('textbox', { name: 'CPUs' }).fill('2');
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByRole('row', { name: /VCPU 1 VCPU 2 VCPU/ }).waitFor();
    await page.getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByText('Instance web is resized.').waitFor();
    await fleet.until('web', ({ status }) => status.assigned?.['VCPU'] === 2 && status.guest?.ready === true);
  });

  it('names the copies that go before a workload is scaled', async () => {
    await enter('/plans?verb=scale&workload=shop&replicas=1');
    const { page } = browser;
    accept();
    await page.getByRole('cell', { name: 'shop-' }).first().waitFor();
    const hash = await page.locator('[data-plan]').getAttribute('data-plan');
    await page.getByText(`berth workload scale shop 1 --apply ${hash}`).waitFor();
    await page.getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByText('Workload shop is scaled.').waitFor();
    expect((await fleet.client.get('workload', 'shop')).spec.replicas).toBe(1);
  });

  it.each([
    ['verb=remove&kind=image&name=tiny', 'image tiny is in use'],
    ['verb=rebalance', 'No host can be emptied'],
    ['verb=migrate&instance=web', 'It cannot be done'],
    ['verb=undo&workload=shop', 'has no earlier revision'],
    ['verb=evacuate&host=h1', 'There is no plan'],
  ])('plans %s: %s', async (query, text) => {
    await enter(`/plans?${query}`);
    await browser.page.getByText(text).first().waitFor();
    browser.expectFaults(/40[09]/); // no revision to return to; a host that is there cannot be given up
  });
});

describe.skipIf(noBrowser !== undefined)(`the audit log in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('says who did what, filtered by the address, and whether its files are whole', async () => {
    await expect(fleet.client.get('image', 'none')).rejects.toThrow(/none/);
    await expect(fleet.client.delete('image', 'none')).rejects.toThrow(/none/);
    await enter('/audit?outcome=done&verb=create');
    const { page } = browser;
    const table = page.getByRole('table', { name: 'Audit log' });
    await table.getByRole('row', { name: /create .*instance\/default\/web/i }).waitFor();
    expect(await table.getByText('delete').count()).toBe(0);
    await page.getByRole('textbox', { name: 'Object' }).fill('none');
    await page.getByRole('textbox', { name: 'Object' }).press('Enter');
    await page.getByText('No line of this time matches.').waitFor();
    await page.goto(`${fleet.url}/ui/audit?object=none`);
    await table.getByRole('row', { name: /delete .*NotFound/ }).waitFor();
    await page.getByText('berth audit log --object none').waitFor();
    await page.getByRole('button', { name: 'Check the files' }).click();
    await page.getByText(/^Whole: \d+ lines/).waitFor();
    expect(await browser.accessibilityFaultsInAllLooks()).toEqual([]);
    await page.getByRole('button', { name: 'Check the files' }).hover();
    await page.getByRole('tooltip').waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.locator(`[data-mantine-color-scheme=${colorScheme}]`).waitFor();
      expect(await browser.accessibilityFaults()).toEqual([]);
    }
  });

  it('is shown only to those who may read it', async () => {
    const { token } = await fleet.client.createToken({
      metadata: { name: 'looks', labels: {} },
      spec: { description: '', role: 'viewer' },
    });
    await browser.enter(fleet, '/audit', token);
    const { page } = browser;
    await page.getByText('The audit log cannot be read').waitFor();
    expect(await page.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Check the files' }).count()).toBe(0);
    browser.expectFaults(/40[13]/);
  });
});

describe.skipIf(noBrowser !== undefined)(`every kind in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  const accept = (): void => void browser.page.on('dialog', (dialog) => void dialog.accept());

  it('pauses and resumes a workload, and shows its copies and its history', async () => {
    await enter('/workloads/shop');
    const { page } = browser;
    await page
      .getByRole('table', { name: 'Copies' })
      .getByRole('link', { name: /^shop-/ })
      .first()
      .waitFor();
    await page.getByRole('table', { name: 'History' }).getByText('1 (present)').waitFor();
    const pause = page.getByRole('button', { name: 'Pause' });
    expect(await pause.getAttribute('data-command')).toBe('berth workload pause shop');
    await pause.click();
    await page.getByRole('button', { name: 'Resume' }).click();
    await pause.waitFor();
    await page.getByRole('link', { name: 'Scale …' }).click();
    await page.getByText('No copy is created or removed.').waitFor();
  });

  it('never shows the value of a secret, and says when each was set', async () => {
    await fleet.client.create('secret', { metadata: { name: 'keys' }, spec: { values: { TOKEN: 'do-not-show' } } });
    await enter('/secrets/keys');
    const { page } = browser;
    await page.getByRole('table', { name: 'Values' }).getByRole('cell', { name: 'TOKEN' }).waitFor();
    await page.getByRole('tab', { name: 'YAML' }).click();
    await page.getByRole('region', { name: 'YAML' }).getByText('TOKEN').waitFor();
    expect(await page.content()).not.toContain('do-not-show');
  });

  it('sorts a list, and stops and deletes what is selected, with the result of each', async () => {
    const spec = { image: 'tiny', cpus: 1, memoryMiB: 64 };
    for (const name of ['bulk-a', 'bulk-b']) await fleet.client.create('instance', { metadata: { name }, spec });
    await fleet.client.create('instance', { metadata: { name: 'bulk-c' }, spec: { ...spec, protected: true } });
    for (const name of ['bulk-a', 'bulk-b', 'bulk-c']) await fleet.ready(name);
    await enter('/instances?q=bulk');
    const { page } = browser;
    accept();
    const names = (): Promise<string[]> =>
      page.getByRole('table', { name: 'Instances' }).getByRole('link', { name: /^bulk/ }).allTextContents();
    await page.getByRole('button', { name: 'Name' }).click();
    await expect.poll(names).toEqual(['bulk-a', 'bulk-b', 'bulk-c']);
    await page.getByRole('button', { name: 'Name' }).click();
    await expect.poll(names).toEqual(['bulk-c', 'bulk-b', 'bulk-a']);
    expect(new URL(page.url()).search).toBe('?q=bulk&sort=-Name');
    await page.getByRole('checkbox', { name: 'Select bulk-a' }).check();
    await page.getByRole('button', { name: 'Stop 1' }).click();
    await page.getByText('Stop: 1 of 1 done').waitFor();
    await page.getByRole('checkbox', { name: 'Select all' }).check();
    expect(await browser.accessibilityFaultsInAllLooks()).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole('button', { name: 'Delete 3' }).click();
    await page.getByText('Delete: 2 of 3 done').waitFor();
    await page.getByText(/bulk-c: .*protected/).waitFor();
    browser.expectFaults(/409/);
  });

  it('finds an object from anywhere', async () => {
    await enter();
    const { page } = browser;
    await page.keyboard.press('ControlOrMeta+k');
    await page.getByLabel('Page or object').fill('shop');
    await page.getByRole('button', { name: /shop workload, project default/ }).click();
    await page.getByRole('heading', { level: 1, name: 'workload shop' }).waitFor();
  });
});

describe.skipIf(noBrowser !== undefined)(`hostile text in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  const markup = '<img/src=x/onerror=globalThis.planted=1>';
  const text = `${markup} \u202egnp.exe \u001b[31m\u001b]0;planted\u0007 ${'long'.repeat(2_500)}`;
  const name = encodeURIComponent(`${markup}\u202e`);

  it('is shown as text on every page, and keeps its place', async () => {
    const { client } = fleet;
    const metadata = { name: 'hostile' };
    await client.create('project', { metadata, spec: { description: text.slice(0, 1_024) } });
    await client.createToken({
      metadata: { ...metadata, labels: {} },
      spec: { description: text.slice(0, 1_024), role: 'viewer' },
    });
    await client.create('binding', {
      metadata,
      spec: { role: 'viewer', subjects: [{ kind: 'user', provider: 'corp', name: markup }] },
    });
    await client.create('secret', {
      metadata,
      spec: { description: text.slice(0, 1_024), values: { key: 'k'.repeat(40) } },
    });
    await client.create('webhook', {
      metadata,
      spec: { url: `https://hooks.example/${markup}`, secrets: [{ secret: 'hostile', key: 'key' }], paused: true },
    });
    await client.create('job', { metadata, spec: { image: 'tiny', script: `echo "${text}"` } });
    await client.create('warmPool', {
      metadata,
      spec: {
        size: 0,
        template: { labels: {}, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } },
      } as unknown as Partial<WarmPoolSpec>, // the rest has defaults
    });
    await enter();
    const { page } = browser;
    /** A page, and what it shows once it is complete; those that axe looks at are true. */
    const pages: readonly (readonly [string, RegExp, boolean?])[] = [
      ['/projects', /hostile/],
      ['/projects/hostile', /U\+202E/, true],
      ['/tokens', /viewer in the fleet/, true],
      ['/tokens/hostile', /U\+202E/],
      ['/bindings', /onerror/],
      ['/bindings/hostile', /onerror/],
      ['/secrets/hostile', /key/, true],
      ['/webhooks', /onerror/],
      ['/webhooks/hostile', /Nothing was sent yet/, true],
      ['/warm-pools/hostile', /none yet/, true],
      ['/jobs/hostile', /U\+202E/],
      ['/jobs/hostile?tab=log', /U\+202E/],
      [`/jobs/${name}`, /There is no job of this name/],
      [`/instances?q=${name}`, /Nothing matches the filter/],
      [`/instances/${name}`, /There is no instance of this name/],
      [`/plans?verb=drain&host=${name}`, /There is no plan/],
      [`/audit?who=${name}`, /No line of this time matches/],
    ];
    for (const [path, shown, examined] of pages) {
      await browser.visit(path);
      await page.getByRole('main').getByText(shown).first().waitFor();
      const images = await page.locator('main img').count();
      const planted = await page.evaluate('[globalThis.planted, document.title.startsWith("planted")]');
      const tallest = await page.evaluate(
        "Math.max(0, ...[...document.querySelectorAll('main [role=row]')].map((row) => row.offsetHeight))",
      );
      expect([path, images, planted, Number(tallest) <= 36]).toEqual([path, 0, [undefined, false], true]);
      if (examined) expect([path, ...(await browser.accessibilityFaults())]).toEqual([path]);
    }
    browser.expectFaults(/40[04]/);
  });
});
