// Login: by a token, which is sent once and not kept.

import { Alert, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';
import { beginSession, errorText } from '../data/session.ts';

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
