// Ctrl+K: type a part of a page's name, or of an instance or host that is loaded, and go there.

import { Modal, NavLink, TextInput } from '@mantine/core';
import { type KeyboardEvent, type ReactNode, useState } from 'react';
import { useNavigate } from 'react-router';
import type { Place } from './places.ts';

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
  const found = places.filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase())).slice(0, 12);
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
        aria-label="Page"
        placeholder="instances, hosts, …"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
        data-autofocus
        mb="xs"
      />
      {found.map(({ name, path }) => (
        <NavLink key={path} component="button" label={name} onClick={() => go(path)} />
      ))}
    </Modal>
  );
}
