import { expect, it } from 'vitest';
import { acceptsJson, refusalFormOf } from './accept.ts';

it.each([
  [undefined, 'json'],
  ['', 'json'],
  ['*/*', 'json'],
  ['application/json', 'json'],
  ['text/html', 'html'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'html'],
  ['text/html, application/json', 'html'],
  ['text/html;q=0.5, application/json', 'json'],
  ['text/*;q=0, application/*', 'json'],
  ['text/plain', 'text'],
  ['application/json;q=0', 'text'],
  ['application/json;q=much', 'text'],
])('answers those who accept %j with a refusal in the form %s', (accept, form) => {
  expect(refusalFormOf(accept)).toBe(form);
});

it.each([
  [undefined, true],
  ['*/*', true],
  ['application/*', true],
  ['text/html, application/json;q=0.1', true],
  ['*/*, application/json;q=0', false],
  ['text/html', false],
])('knows whether those who accept %j accept JSON', (accept, json) => {
  expect(acceptsJson(accept)).toBe(json);
});
