// The page that shows the API: without a token, as the document that it shows.

import { route } from './route.ts';

const tag = 'process';
const page = { description: 'done', bytes: true } as const;

export const docsPageRoutes = {
  page: route({
    id: 'docsPage',
    tag,
    method: 'GET',
    path: '/docs',
    access: 'open',
    summary: 'A page that shows the API and lets you try it, with your token',
    answers: { 200: page },
  }),
  file: route({
    id: 'docsPageFile',
    tag,
    method: 'GET',
    path: '/docs/:file',
    access: 'open',
    summary: 'A script or style of that page',
    answers: { 200: page },
    errors: ['NotFound'],
  }),
} as const;
