// What is shown to whom: the login, or the pages.

import { Alert, Button, Center } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { finishLogin, takeAnswer } from './data/browser-login.ts';
import { errorText, openLink, takeLink, whoAmI } from './data/session.ts';
import { Pages } from './routes.tsx';
import { Login } from './pages/login.tsx';

/** Once: the secret of a link works once. */
const link = takeLink();
const answer = takeAnswer();
const opened = entered().then(() => undefined, errorText);

async function entered(): Promise<void> {
  if (answer !== undefined) await finishLogin(answer);
  else if (link !== undefined) await openLink(link);
}

export function App(): ReactNode {
  const queries = useQueryClient();
  const [why, setWhy] = useState<string>();
  const who = useQuery({
    queryKey: ['who'],
    staleTime: 60_000,
    queryFn: async () => {
      const fault = await opened;
      const me = await whoAmI();
      setWhy(me === undefined ? fault : undefined);
      return me ?? null;
    },
  });
  const again = (): void => {
    queries.clear();
    void queries.invalidateQueries({ queryKey: ['who'] });
    location.reload();
  };
  if (who.isPending) return null;
  if (who.isError && who.data === undefined)
    return (
      <Center mih="100dvh" component="main">
        <Alert color="red" title="The server does not answer" role="alert">
          {errorText(who.error)}{' '}
          <Button size="compact-xs" variant="default" onClick={() => void who.refetch()}>
            Try again
          </Button>
        </Alert>
      </Center>
    );
  return who.data ? <Pages who={who.data} onLeft={again} /> : <Login why={why} onIn={again} />;
}
