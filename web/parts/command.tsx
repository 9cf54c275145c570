// The berth command that shows or does the same as a page.

import { ActionIcon, Code, CopyButton, Group, Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';

export function Command({ words }: { readonly words: string }): ReactNode {
  return (
    <Group gap="xs" wrap="nowrap">
      <Code>{words}</Code>
      <CopyButton value={words}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? 'Copied' : 'Copy'}>
            <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Copy: ${words}`} onClick={copy}>
              <CopySign copied={copied} />
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  );
}

function CopySign({ copied }: { readonly copied: boolean }): ReactNode {
  return (
    <svg
      width="14"
      height="14"
      viewBox="0 0 14 14"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      aria-hidden="true"
    >
      {copied ? (
        <path d="M2 7.5 5.5 11 12 3.5" />
      ) : (
        <>
          <rect x="4.5" y="4.5" width="8" height="8" rx="1" />
          <path d="M9.5 4.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" />
        </>
      )}
    </svg>
  );
}
