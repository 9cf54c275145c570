// How the dashboard is built: into web/dist, with names that change with the content, and nothing in the page itself that the server's
// policy would refuse.

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// oxlint-disable-next-line import/no-default-export -- the tool reads it
export default defineConfig({
  root: import.meta.dirname,
  base: '/ui/',
  plugins: [react()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the policy permits no fonts or scripts inside others
    modulePreload: { polyfill: false },
    target: 'es2022',
  },
  // For work on the pages: a server of Berth answers what is not of the pages.
  server: { proxy: { '/v1': 'http://127.0.0.1:7070' } },
});
