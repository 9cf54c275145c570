// Ctrl+K: type a part of the name of a page or an object, and go there.

import { Modal, NavLink, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, type ReactNode, useState } from 'react';
import { useNavigate } from 'react-router';
import type { Kind } from '../../src/api/resources/index.ts';
import { client } from '../data/client.ts';
import { paths } from '../paths.ts';
import type { Place } from './places.ts';
import { visibleText } from './text.tsx';

export function Palette({
  places,
  opened,
  onClose,
}: {
  readonly places: readonly Place[];
  readonly opened: boolean;
  readonly onClose: () => void;
}): ReactNode {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  const wanted = text.trim().toLowerCase();
  const pages = places.filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, 8);
  const searched = useDebouncedValue(wanted, 150)[0];
  const kinds = searchedKinds.filter((kind) => places.some(({ path }) => path === paths.list(kind)));
  const objects = useQuery({
    queryKey: ['objects', searched, kinds],
    // A space or a comma would begin another word of the filter.
    enabled: opened && searched.length >= wantedMin && !/[\s,=]/.test(searched),
    queryFn: () => objectsWith(searched, kinds),
  });
  const found: readonly Found[] = [...pages, ...(searched === wanted ? (objects.data ?? []) : [])];
  const go = (path: string | undefined): void => {
    if (path === undefined) return;
    setText('');
    onClose();
    void navigate(path);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') go(found[0]?.path);
  };
  return (
    <Modal opened={opened} onClose={onClose} title="Go to">
      <TextInput
        aria-label="Page or object"
        placeholder="instances, web-1, …"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
        data-autofocus
        mb="xs"
      />
      {found.map(({ name, path, what }) => (
        <NavLink
          key={path}
          component="button"
          label={<bdi>{visibleText(name)}</bdi>}
          {...(what === undefined ? {} : { description: what })}
          onClick={() => go(path)}
        />
      ))}
    </Modal>
  );
}

interface Found {
  readonly name: string;
  readonly path: string;
  /** Its kind and project; absent: a page. */
  readonly what?: string;
}

const searchedKinds = ['host', 'instance', 'workload', 'job'] as const satisfies readonly Kind[];
const wantedMin = 2;
const foundMax = 6;

/** The newest of each kind whose name has this part. */
async function objectsWith(wanted: string, kinds: readonly Kind[]): Promise<readonly Found[]> {
  const pages = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await client.list(kind, { words: wanted, order: 'newest', offset: 0, limit: foundMax });
      return items.map(({ metadata }) => ({
        name: metadata.name,
        path: paths.one(kind, metadata),
        what: metadata.project ? `${kind}, project ${metadata.project}` : kind,
      }));
    }),
  );
  return pages.flat();
}
