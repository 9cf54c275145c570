// A link to a plan for one resource.

import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { paths } from '../../paths.ts';
import { planForms, type PlanVerb } from './plan-forms.ts';

export function PlanLink({
  verb,
  answers,
}: {
  readonly verb: PlanVerb;
  readonly answers: Readonly<Record<string, string | undefined>>;
}): ReactNode {
  return (
    <Button size="xs" variant="default" component={Link} to={paths.plan(verb, answers)}>
      {planForms[verb].title} …
    </Button>
  );
}
