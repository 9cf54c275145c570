// Plans: what a change of the fleet would do, before and after. A plan is applied by its hash, and refused when it has changed.

import { Stack, Tabs, Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';
import type { WhoAmI } from '../../../src/api/routes/access.ts';
import { mayAnywhere } from '../../data/may-anywhere.ts';
import { Page } from '../../parts/page.tsx';
import { PlanFormView } from './plan-form-view.tsx';
import { answersOf, planCommand, planForms, type PlanVerb, planVerbs } from './plan-forms.ts';
import { Suggested } from './suggested.tsx';
import { UnderWay } from './under-way.tsx';

export function PlansPage({ who }: { readonly who: WhoAmI }): ReactNode {
  const [search, setSearch] = useSearchParams();
  const verbs = planVerbs.filter((verb) => {
    const { needs } = planForms[verb];
    return mayAnywhere(who, needs.resource, needs.verb);
  });
  const asked = search.get('verb');
  const verb: PlanVerb | undefined = verbs.find((each) => each === asked) ?? verbs[0];
  if (verb === undefined) return <Page title="Plans">You are not permitted to plan changes.</Page>;
  return (
    <Page title="Plans" command={planCommand(verb, answersOf(planForms[verb], search))}>
      <UnderWay />
      <Suggested />
      <Tabs value={verb} onChange={(to) => setSearch(to === null ? {} : { verb: to })} keepMounted={false}>
        <Tabs.List>
          {verbs.map((each) => (
            <Tabs.Tab value={each} key={each}>
              {planForms[each].title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {verbs.map((each) => (
          <Tabs.Panel value={each} key={each} pt="sm">
            <Stack>
              <Words>{planForms[each].what}</Words>
              <PlanFormView verb={each} search={search} onSearch={setSearch} key={each} />
            </Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Page>
  );
}
