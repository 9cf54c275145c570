// Creates or changes a resource as YAML: checked by the server before it is sent, with its messages at the field.

import { Alert, Button, Group, List, Stack, Text as Words } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { useBeforeUnload } from 'react-router';
import { ApiError } from '../../../../src/api/errors.ts';
import { type FieldChange, fieldChanges } from '../../../../src/api/field-changes.ts';
import type { RolloutPlan } from '../../../../src/api/plans/rollout-plan.ts';
import { copiesText, paceText } from '../../../../src/api/plans/rollout-text.ts';
import type { AnyResource, Kind } from '../../../../src/api/resources/index.ts';
import { client } from '../../../data/client.ts';
import { errorText } from '../../../data/session.ts';
import { Command } from '../../../parts/command.tsx';
import { Loading } from '../../../parts/standing.tsx';
import { Text } from '../../../parts/text.tsx';
import { type Draft, draftText, placeOf, type Problem, readDraft } from './draft.ts';
import { templateOf } from './template.ts';

const YamlEditor = lazy(async () => ({ default: (await import('./yaml-editor.tsx')).YamlEditor }));

export function Edit({
  kind,
  resource,
  onDone,
}: {
  readonly kind: Kind;
  /** As it is now; absent: a new one. */
  readonly resource?: AnyResource;
  readonly onDone: (saved: AnyResource) => void;
}): ReactNode {
  /** What the editing began with. */
  const [base, setBase] = useState(resource);
  const [initial, setInitial] = useState(() => (resource ? draftText(kind, resource) : templateOf(kind)));
  const [text, setText] = useState(initial);
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [key, setKey] = useState(newKey);
  const dirty = text !== initial;
  useBeforeUnload((event) => {
    if (dirty) event.preventDefault();
  });

  const send = useMutation({
    mutationFn: async (dry: boolean): Promise<AnyResource | undefined> => {
      const { draft, problems: found } = readDraft(text, kind);
      setProblems(found);
      if (draft === undefined) return undefined;
      return resource ? change(kind, { resource, draft, dry }) : create(kind, { draft, dry, key });
    },
    onSuccess: (saved, dry) => {
      if (saved === undefined || dry) return;
      setInitial(text); // nothing would be lost any more
      onDone(saved);
    },
    onError: (error) => {
      if (error instanceof ApiError && error.field !== undefined)
        setProblems([{ ...placeOf(text, error.field), message: error.message }]);
    },
  });
  const edited = (after: string): void => {
    setText(after);
    setKey(newKey());
    send.reset();
    setProblems([]);
  };
  const theirs =
    base && resource && base.metadata.generation !== resource.metadata.generation
      ? fieldChanges(base.spec, resource.spec)
      : undefined;
  const name = resource?.metadata.name ?? kind;
  return (
    <Stack>
      {theirs && resource ? (
        <Alert color="yellow" title="It was changed by others since you began" role="alert">
          <Changes of={theirs} />
          <Group mt="xs">
            <Button
              size="xs"
              variant="default"
              onClick={() => {
                const now = draftText(kind, resource);
                setBase(resource);
                setInitial(now);
                edited(now);
              }}
            >
              Begin again with theirs
            </Button>
            <Button size="xs" variant="default" onClick={() => setBase(resource)}>
              Keep mine
            </Button>
          </Group>
        </Alert>
      ) : null}
      <Suspense fallback={<Loading label="Loading the editor" />}>
        <YamlEditor initial={initial} onChange={edited} problems={problems} label={`YAML of ${name}`} />
      </Suspense>
      <Group>
        <Button variant="default" loading={send.isPending} onClick={() => send.mutate(true)}>
          Check
        </Button>
        <Button loading={send.isPending} disabled={theirs !== undefined} onClick={() => send.mutate(false)}>
          {resource ? 'Save' : 'Create'}
        </Button>
        <Command words={`berth apply -f ${name}.yaml`} />
      </Group>
      {problems.map(({ message, from }) => (
        <Alert key={message} color="red" role="alert" title={`Line ${text.slice(0, from).split('\n').length}`}>
          <Text>{message}</Text>
        </Alert>
      ))}
      {send.error && problems.length === 0 ? (
        <Alert color="red" role="alert" title={resource ? 'It was not changed' : 'It was not created'}>
          <Text>{errorText(send.error)}</Text>
        </Alert>
      ) : null}
      {send.data && send.variables ? <Checked planned={send.data} resource={resource} /> : null}
    </Stack>
  );
}

function Checked({
  planned,
  resource,
}: {
  readonly planned: AnyResource & {
    readonly explanation?: { readonly summary: string };
    readonly rollout?: RolloutPlan;
  };
  readonly resource: AnyResource | undefined;
}): ReactNode {
  return (
    <Alert color="green" role="status" title="The server accepts it">
      {planned.explanation === undefined ? null : <Text>{planned.explanation.summary}</Text>}
      {resource === undefined ? null : (
        <Changes
          of={[
            ...fieldChanges(resource.metadata.labels, planned.metadata.labels, 'labels'),
            ...fieldChanges(resource.spec, planned.spec),
          ]}
        />
      )}
      {planned.rollout === undefined || planned.rollout.replaced === 0 ? null : (
        <Words size="sm">
          {copiesText(planned.rollout.replaced)} replaced: {paceText(planned.rollout)}.
        </Words>
      )}
    </Alert>
  );
}

function Changes({ of: changes }: { readonly of: readonly FieldChange[] }): ReactNode {
  if (changes.length === 0) return <Words size="sm">Nothing would change.</Words>;
  return (
    <List size="sm">
      {changes.map(({ field, before, after }) => (
        <List.Item key={field}>
          <Text>{`${field}: ${shown(before)} → ${shown(after)}`}</Text>
        </List.Item>
      ))}
    </List>
  );
}

function shown(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}

function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

/** A repetition with the same key creates nothing more. */
function create(
  kind: Kind,
  { draft: { metadata, spec }, dry, key }: { readonly draft: Draft; readonly dry: boolean; readonly key: string },
): Promise<AnyResource> {
  const body = { metadata, spec };
  return dry ? client.dryRun(kind, body) : client.create(kind, body, { idempotencyKey: key });
}

function change(
  kind: Kind,
  { resource, draft, dry }: { readonly resource: AnyResource; readonly draft: Draft; readonly dry: boolean },
): Promise<AnyResource> {
  const { name, project, revision } = resource.metadata;
  if (draft.metadata.name !== name)
    throw new ApiError('InvalidRequest', 'a resource keeps its name; create another one instead', {
      field: 'metadata.name',
    });
  const body = {
    metadata: { ...(project ? { project } : {}), labels: draft.metadata.labels ?? {}, revision },
    spec: draft.spec,
  };
  return dry ? client.dryRunOfChange(kind, name, body) : client.replace(kind, name, body);
}
