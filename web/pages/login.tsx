// Login: by a token, which is sent once and not kept, or by a provider.

import { Alert, Button, Center, Code, Divider, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { beginLogin, loginProviders } from '../data/browser-login.ts';
import { beginSession, errorText } from '../data/session.ts';
import { visibleText } from '../parts/text.tsx';

export function Login({ why, onIn }: { readonly why: string | undefined; readonly onIn: () => void }): ReactNode {
  const [token, setToken] = useState('');
  const [error, setError] = useState(why);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Log in · Berth';
  }, []);
  const submit = (event: { preventDefault(): void }): void => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    beginSession(token).then(onIn, (cause: unknown) => {
      setError(errorText(cause));
      setBusy(false);
    });
  };
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w={420} maw="100%">
        <form onSubmit={submit}>
          <Stack>
            <Title order={1} size="h2">
              Log in to Berth
            </Title>
            {error === undefined ? null : (
              <Alert color="red" role="alert" title="Not logged in">
                {error}
              </Alert>
            )}
            <PasswordInput
              label="Token"
              description="It begins a session of twelve hours, and is not kept."
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              autoComplete="current-password"
              required
              data-autofocus
            />
            <Button type="submit" loading={busy} disabled={token.trim() === ''}>
              Log in
            </Button>
            <Providers onError={setError} />
            <Text size="sm" c="dimmed">
              On a machine where the command line is set up, <Code>berth dashboard</Code> prints a link that logs you
              in.
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  );
}

function Providers({ onError }: { readonly onError: (text: string) => void }): ReactNode {
  const providers = useQuery({ queryKey: ['providers'], queryFn: loginProviders, staleTime: Number.POSITIVE_INFINITY });
  const login = useMutation({ mutationFn: beginLogin, onError: (error) => onError(errorText(error)) });
  if (providers.data === undefined || providers.data.length === 0) return null;
  return (
    <>
      <Divider label="or" />
      {providers.data.map(({ name }) => (
        <Button key={name} variant="default" loading={login.isPending} onClick={() => login.mutate(name)}>
          Log in with {visibleText(name)}
        </Button>
      ))}
    </>
  );
}
