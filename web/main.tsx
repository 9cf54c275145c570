// The dashboard: finds out who looks, then shows the pages. It keeps no token, and gets all that it shows from the API.

import './nonce.ts';
import '@mantine/core/styles.css';
import { createTheme, type CSSVariablesResolver, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { pageNonce } from './nonce.ts';

/** The shades that text can be read on, and titles of messages in the colour of other text. */
const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: 8,
  autoContrast: true,
  respectReducedMotion: true,
  components: { Alert: { styles: { title: { color: 'var(--mantine-color-text)' } } } },
});
/** The library's own colours for these have a contrast below 4.5. */
const legible: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#495057',
    '--mantine-color-anchor': '#1864ab',
    '--mantine-color-placeholder': '#5c636a',
  },
  dark: {
    '--mantine-color-dimmed': '#b8b8b8',
    '--mantine-color-anchor': '#74c0fc',
    '--mantine-color-placeholder': '#a6a6a6',
  },
});
const queries = new QueryClient({ defaultOptions: { queries: { retry: 1, refetchOnWindowFocus: true } } });

/** A part of the page cannot be loaded: after an update of the server it has another name, which only a new page knows. */
const reloadEveryMs = 30_000;
window.addEventListener('vite:preloadError', () => {
  const lastMs = Number(sessionStorage.getItem('reloaded') ?? 0);
  if (Date.now() - lastMs < reloadEveryMs) return; // reloading did not help
  sessionStorage.setItem('reloaded', String(Date.now()));
  location.reload();
});

if (location.pathname === '/') history.replaceState(null, '', `/ui/${location.search}${location.hash}`);
const root = document.getElementById('root');
if (root === null) throw new Error('the page has no place for the dashboard');
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      cssVariablesResolver={legible}
      getStyleNonce={() => pageNonce}
    >
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
