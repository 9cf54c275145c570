// Who else may use this instance for a while: tokens for some ways into it. The text of one is shown once, when it is created.

import { Alert, Button, Checkbox, Code, Group, Select, Stack, Text as Words, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { guestVerbs, type ShareVerb } from '../../../src/api/access.ts';
import type { Instance } from '../../../src/api/resources/instance.ts';
import type { Token } from '../../../src/api/resources/token.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { errorText } from '../../data/session.ts';
import { useList } from '../../data/use-list.ts';
import { Actions } from '../../parts/actions.tsx';
import { Command } from '../../parts/command.tsx';
import { Loading } from '../../parts/standing.tsx';
import { Text } from '../../parts/text.tsx';
import { exactTime } from '../../parts/units.ts';
import { CellRow, WideTable } from '../../parts/wide-table.tsx';
import { projectFlag } from '../resource/commands.ts';

const lifetimes = ['30m', '2h', '8h', '1d', '7d'] as const;
type Lifetime = (typeof lifetimes)[number];

const secondsOf: Readonly<Record<Lifetime, number>> = {
  '30m': 1_800,
  '2h': 7_200,
  '8h': 28_800,
  '1d': 86_400,
  '7d': 604_800,
};

interface Of {
  readonly instance: Instance;
}

export function Shares({ instance }: Of): ReactNode {
  const { items, standing } = useList('token');
  const own = items.filter(({ spec }) => spec.share?.instanceId === instance.metadata.id);
  return (
    <Stack>
      <NewShare instance={instance} />
      <Title order={2} size="h4">
        Shares
      </Title>
      {standing.state === 'loading' ? (
        <Loading label="Loading the shares" />
      ) : standing.state === 'refused' ? (
        <Words>You may create shares, but not list them.</Words>
      ) : own.length === 0 ? (
        <Words>This instance is not shared.</Words>
      ) : (
        <WideTable label="Shares" columns={['Name', 'Permits', 'Expires', 'Last use', '']}>
          {own.map((token) => (
            <ShareRow key={token.metadata.id} token={token} />
          ))}
        </WideTable>
      )}
    </Stack>
  );
}

function ShareRow({ token: { metadata, spec, status } }: { readonly token: Token }): ReactNode {
  const { name } = metadata;
  const mayExtend = useMay('update', 'token');
  const mayRevoke = useMay('delete', 'token');
  const extend = {
    name: 'Extend by 2 h',
    command: `berth share extend ${name} --expires 2h`,
    run: () => client.extendToken(name, { expiresInSec: secondsOf['2h'] }),
  };
  const revoke = {
    name: 'Revoke',
    command: `berth share revoke ${name}`,
    question: `Revoke share ${name}? What it has open is closed.`,
    dangerous: true,
    run: () => client.delete('token', name),
  };
  return (
    <CellRow
      cells={[
        name,
        spec.share?.verbs.join(', ') ?? '',
        spec.expiresAtMs === undefined ? 'never' : exactTime(spec.expiresAtMs),
        status.lastUsedAtMs === undefined ? 'never' : exactTime(status.lastUsedAtMs),
        <Actions
          key="actions"
          actions={[...(mayExtend || mayRevoke ? [extend] : []), ...(mayRevoke ? [revoke] : [])]}
        />,
      ]}
    />
  );
}

function NewShare({ instance: { metadata } }: Of): ReactNode {
  const { name: instance, project } = metadata;
  const [verbs, setVerbs] = useState<readonly ShareVerb[]>(['console', 'logs', 'forward']);
  const [lifetime, setLifetime] = useState<Lifetime>('2h');
  const [name, setName] = useState('');
  const create = useMutation({
    mutationFn: () =>
      client.share(instance, {
        project,
        verbs: [...verbs],
        expiresInSec: secondsOf[lifetime],
        ...(name === '' ? {} : { name }),
      }),
  });
  const command = `berth share ${instance} --verbs ${verbs.join(',')} --expires ${lifetime}${name === '' ? '' : ` --name ${name}`}${projectFlag(project)}`;
  return (
    <form
      aria-label="New share"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Stack gap="sm">
        <Checkbox.Group
          label="Permit"
          value={[...verbs]}
          onChange={(chosen) => setVerbs(guestVerbs.filter((verb) => chosen.includes(verb)))}
        >
          <Group mt={4}>
            {guestVerbs.map((verb) => (
              <Checkbox key={verb} value={verb} label={verb} />
            ))}
          </Group>
        </Checkbox.Group>
        <Group align="end">
          <Select
            label="Expires in"
            data={[...lifetimes]}
            value={lifetime}
            allowDeselect={false}
            w={110}
            onChange={(value) => setLifetime(lifetimes.find((each) => each === value) ?? '2h')}
          />
          <TextInput
            label="Name"
            placeholder={`share-${instance}`}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button type="submit" disabled={verbs.length === 0} loading={create.isPending}>
            Share
          </Button>
        </Group>
        <Command words={command} />
        {create.error ? (
          <Alert color="red" role="alert">
            <Text>{errorText(create.error)}</Text>
          </Alert>
        ) : null}
        {create.data ? (
          <Alert color="green" role="status" title={`Share ${create.data.resource.metadata.name} is created`}>
            Its token is shown only now. It opens the instance to everyone who has it.
            <Code block mt="xs" aria-label="Token">
              {create.data.token}
            </Code>
          </Alert>
        ) : null}
      </Stack>
    </form>
  );
}
