// A real browser at the dashboard, for each test of a suite. A test fails on an error of the console, a refused style or script, and an
// unexpected answer.

import { existsSync } from 'node:fs';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { Fleet } from './processes.ts';

const program = '/usr/bin/chromium';
/** As polls of tests (vitest.config.ts): a busy machine takes longer than the 30 s of Playwright. */
const waitMsMax = 100_000;
/** Why there can be no browser. */
export const noBrowser = existsSync(program) ? undefined : 'no browser is installed (package chromium)';

/** Ends when no colour changes any more: axe reads colours as they are in the middle of a transition. */
const colorsSettled = `Promise.allSettled(document.getAnimations()
  .filter(({ playState, effect }) => playState === 'running' && effect?.getComputedTiming().endTime !== Infinity)
  .map((animation) => animation.finished))`;

class DashboardBrowser {
  #browser: Browser | undefined;
  #context: BrowserContext | undefined;
  #page: Page | undefined;
  #faults: string[] = [];

  /** Of the test that runs. */
  get page(): Page {
    if (this.#page === undefined) throw new Error('no test runs');
    return this.#page;
  }

  async launch(): Promise<void> {
    this.#browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
  }

  async close(): Promise<void> {
    await this.#browser?.close();
  }

  async openPage(): Promise<void> {
    this.#faults = [];
    this.#context = await this.#browser?.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
    });
    this.#context?.setDefaultTimeout(waitMsMax);
    const page = (this.#page = await this.#context?.newPage());
    page?.on('pageerror', (error) => this.#faults.push(`error: ${error.message}`));
    page?.on('console', (message) => {
      // Other tests create network interfaces on this machine: the browser then ends its requests, and the pages send them again.
      const ownFault = !message.text().includes('ERR_NETWORK_CHANGED');
      if (message.type() === 'error' && ownFault) this.#faults.push(`console: ${message.text()}`);
    });
    page?.on('response', (response) => {
      if (response.status() >= 400) this.#faults.push(`${response.status()} ${response.url()}`);
    });
  }

  async closePage(): Promise<void> {
    await this.#context?.close();
    if (this.#faults.length > 0) throw new Error(this.#faults.join('\n'));
  }

  /** For what a test provokes. */
  expectFaults(pattern: RegExp): void {
    this.#faults = this.#faults.filter((fault) => !pattern.test(fault));
  }

  /** By a link, as the operator, or as the bearer of `token`. */
  async enter(fleet: Pick<Fleet, 'client' | 'url'>, path = '', token?: string): Promise<void> {
    if (token === undefined) {
      const link = await fleet.client.createSessionLink();
      await this.#goto(`${fleet.url}${link.path}`);
    } else {
      await this.#goto(fleet.url);
      await this.page.getByLabel('Token').first().fill(token);
      await this.page.getByRole('button', { name: 'Log in' }).click();
    }
    await this.page.getByRole('heading', { name: 'Fleet' }).waitFor();
    if (path !== '') await this.#goto(`${fleet.url}/ui${path}`);
  }

  /** Again, when the browser ended the request because of a new network interface. */
  async #goto(url: string): Promise<void> {
    await this.page.goto(url).catch(async (error: unknown) => {
      if (!String(error).includes('ERR_NETWORK_CHANGED')) throw error;
      await this.page.goto(url);
    });
  }

  /** In light and wide, and in dark on a phone. */
  async accessibilityFaultsInAllLooks(): Promise<readonly string[]> {
    const faults: string[] = [];
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 360],
    ] as const) {
      await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await this.page.setViewportSize({ width, height: 800 });
      await this.page.locator(`[data-mantine-color-scheme=${colorScheme}]`).waitFor();
      for (const fault of await this.accessibilityFaults()) faults.push(`${colorScheme} ${width}: ${fault}`);
    }
    return faults;
  }

  /** Goes to a page as a link within the dashboard does. */
  async visit(path: string): Promise<void> {
    await this.page.evaluate(`{
      history.pushState(null, '', ${JSON.stringify(`/ui${path}`)});
      dispatchEvent(new PopStateEvent('popstate', { state: null }));
    }`);
  }

  /** What axe finds, of those findings that keep people out. */
  async accessibilityFaults(): Promise<readonly string[]> {
    await this.page.evaluate(axe.source);
    await this.page.evaluate(colorsSettled);
    const found = (await this.page.evaluate('axe.run()')) as AxeResults; // its own type
    return found.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  }
}

/** To be called in a file of tests: one browser for all, a fresh page for each. */
export function dashboardBrowser(): DashboardBrowser {
  const at = new DashboardBrowser();
  beforeAll(async () => {
    if (!noBrowser) await at.launch();
  });
  afterAll(() => at.close());
  beforeEach(async () => {
    if (!noBrowser) await at.openPage();
  });
  afterEach(() => at.closePage());
  return at;
}
