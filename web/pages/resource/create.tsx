// A new resource of any kind.

import type { ReactNode } from 'react';
import { useNavigate, useParams } from 'react-router';
import { Page } from '../../parts/page.tsx';
import { kindOfPlural, paths } from '../../paths.ts';
import { Edit } from './edit/edit.tsx';

export function CreatePage(): ReactNode {
  const kind = kindOfPlural(useParams()['plural']);
  const navigate = useNavigate();
  if (kind === undefined) return <Page title="There is no such page">The address may be mistyped.</Page>;
  return (
    <Page title={`New ${kind}`}>
      <Edit kind={kind} onDone={({ metadata }) => void navigate(paths.one(kind, metadata))} />
    </Page>
  );
}
