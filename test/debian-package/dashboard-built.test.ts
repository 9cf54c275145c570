import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { dashboardFault } from '../../scripts/package/dashboard-built.ts';

it('says what to run when a package is built without the dashboard', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-no-dashboard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dist = join(folder, 'web/dist');
  expect(dashboardFault(folder)).toContain('run "npm run build:web" first');
  mkdirSync(dist, { recursive: true }); // an interrupted build
  expect(dashboardFault(folder)).toContain(`there is no ${join(dist, 'index.html')}`);
  writeFileSync(join(dist, 'index.html'), '');
  expect(dashboardFault(folder)).toBeUndefined();
});
