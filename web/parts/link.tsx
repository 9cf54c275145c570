// A link to another page: a real one, so that it opens in a new tab as any other. A plain element: long lists have some in each row.

import type { ReactNode } from 'react';
import { Link } from 'react-router';
import classes from './link.module.css';

export function PageLink({ to, children }: { readonly to: string; readonly children: ReactNode }): ReactNode {
  return (
    <Link to={to} className={classes['link']}>
      {children}
    </Link>
  );
}
