// The form of one kind of plan, the plan that the server makes of it, and the button that applies it.

import { Alert, Button, Group, NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { errorText } from '../../data/session.ts';
import { Command } from '../../parts/command.tsx';
import { PageLink } from '../../parts/link.tsx';
import { Loading } from '../../parts/standing.tsx';
import { Text } from '../../parts/text.tsx';
import { applyPlan, makePlan } from './make-plan.ts';
import { answersOf, defaultOf, faultOf, type Field, planCommand, planForms, type PlanVerb } from './plan-forms.ts';
import { PlanView } from './plan-view.tsx';

export function PlanFormView({
  verb,
  search,
  onSearch,
}: {
  readonly verb: PlanVerb;
  readonly search: URLSearchParams;
  readonly onSearch: (after: Record<string, string>) => void;
}): ReactNode {
  const form = planForms[verb];
  const answers = answersOf(form, search);
  const [draft, setDraft] = useState<Readonly<Record<string, string>>>(() => ({ ...answers }));
  const [told, setTold] = useState<string>();
  /** The plan of a link is shown at once; after edits in the form, the user requests the plan. */
  const complete = faultOf(form, answers) === undefined && search.has('verb');
  const plan = useQuery({
    queryKey: ['plan', verb, answers],
    queryFn: () => makePlan(verb, answers),
    enabled: complete,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  const apply = useMutation({
    mutationFn: () => applyPlan(verb, answers, plan.data?.hash ?? ''),
    // It may be refused because the plan has changed: then the new plan is shown.
    onError: () => void plan.refetch(),
  });
  const ask = (): void => {
    const fault = faultOf(form, clean(draft));
    setTold(fault);
    if (fault !== undefined) return;
    apply.reset();
    const after = { verb, ...clean(draft) };
    if (new URLSearchParams(after).toString() === search.toString()) void plan.refetch();
    else onSearch(after);
  };
  return (
    <Stack>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <Group align="end">
          {form.fields.map((field) => (
            <FieldInput
              key={field.name}
              field={field}
              value={draft[field.name] ?? ''}
              onValue={(value) => setDraft((before) => ({ ...before, [field.name]: value }))}
            />
          ))}
          <Button type="submit" loading={plan.isFetching}>
            Show the plan
          </Button>
        </Group>
      </form>
      {told === undefined ? null : (
        <Alert color="red" role="alert">
          {told}
        </Alert>
      )}
      {plan.isError ? (
        <Alert color="red" role="alert" title="There is no plan">
          <Text>{errorText(plan.error)}</Text>
        </Alert>
      ) : null}
      {apply.data ? (
        <Alert color="green" role="status" title="Applied">
          <Text>{apply.data.message}</Text>{' '}
          {apply.data.path === undefined ? null : <PageLink to={apply.data.path}>Show it</PageLink>}
        </Alert>
      ) : null}
      {apply.error ? (
        <Alert color="red" role="alert" title="The plan was not applied">
          <Text>{errorText(apply.error)}</Text>
        </Alert>
      ) : null}
      {complete && plan.isPending ? <Loading label="Making the plan" /> : null}
      {plan.data === undefined || plan.isError || apply.data ? null : (
        <>
          <PlanView plan={plan.data} />
          <Group>
            <Button
              loading={apply.isPending}
              disabled={plan.isFetching || plan.data.obstacles.length > 0}
              title={plan.data.obstacles.length > 0 ? 'It cannot be applied: see why above' : undefined}
              onClick={() => {
                if (window.confirm(`${form.title}: ${plan.data.summary} Apply it?`)) apply.mutate();
              }}
            >
              Apply
            </Button>
            <Command words={planCommand(verb, answers, plan.data.hash ?? '')} />
          </Group>
        </>
      )}
    </Stack>
  );
}

function clean(draft: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(draft)
      .map(([name, value]) => [name, value.trim()] as const)
      .filter(([, value]) => value !== ''),
  );
}

function FieldInput({
  field,
  value,
  onValue,
}: {
  readonly field: Field;
  readonly value: string;
  readonly onValue: (value: string) => void;
}): ReactNode {
  const label =
    'unit' in field && field.unit ? `${field.label}, ${field.unit === 'm' ? 'min' : field.unit}` : field.label;
  switch (field.type) {
    case 'switch':
      return (
        <Switch
          label={label}
          checked={value === 'true'}
          onChange={(event) => onValue(event.currentTarget.checked ? 'true' : '')}
        />
      );
    case 'choice':
      return (
        <Select
          label={label}
          data={[...field.choices]}
          value={value || field.default}
          allowDeselect={false}
          onChange={(chosen) => onValue(chosen ?? '')}
          w={170}
        />
      );
    case 'number':
      return (
        <NumberInput
          label={label}
          value={value}
          placeholder={defaultOf(field)}
          allowDecimal={false}
          min={field.min}
          required={field.required ?? false}
          onChange={(number) => onValue(String(number))}
          w={150}
        />
      );
    case 'text':
      return (
        <TextInput
          label={label}
          value={value}
          required={field.required ?? false}
          onChange={(event) => onValue(event.currentTarget.value)}
          w={200}
        />
      );
  }
}
