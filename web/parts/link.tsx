// A link to another page: a real one, so that it opens in a new tab as any other.

import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';

export function PageLink({ to, children }: { readonly to: string; readonly children: ReactNode }): ReactNode {
  return (
    <Anchor component={Link} to={to} inherit>
      {children}
    </Anchor>
  );
}
