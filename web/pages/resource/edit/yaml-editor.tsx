// An editor for YAML, with problems marked where they are.

import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { defaultHighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { type ReactNode, useEffect, useRef } from 'react';
import { pageNonce } from '../../../nonce.ts';
import type { Problem } from './draft.ts';

export function YamlEditor({
  initial,
  onChange,
  problems,
  label,
}: {
  /** Another value begins a new text. */
  readonly initial: string;
  readonly onChange: (text: string) => void;
  readonly problems: readonly Problem[];
  readonly label: string;
}): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const changed = useRef(onChange);
  changed.current = onChange;

  useEffect(() => {
    if (place.current === null) return undefined;
    view.current = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: initial,
        extensions: [
          EditorView.cspNonce.of(pageNonce),
          lineNumbers(),
          EditorView.lineWrapping,
          lintGutter(),
          history(),
          yaml(),
          syntaxHighlighting(defaultHighlightStyle),
          keymap.of([...defaultKeymap, ...historyKeymap]), // Tab goes on to the next field, as elsewhere
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current(update.state.doc.toString());
          }),
          look,
        ],
      }),
    });
    return () => view.current?.destroy();
  }, [initial, label]);

  useEffect(() => {
    const { current } = view;
    if (current === undefined) return;
    const end = current.state.doc.length;
    const marks = problems.map(({ from, to, message }) => ({
      from: Math.min(from, end),
      to: Math.min(to, end),
      message,
      severity: 'error' as const,
    }));
    current.dispatch(setDiagnostics(current.state, marks));
  }, [problems]);

  return <div ref={place} />;
}

const look = EditorView.theme({
  '&': {
    border: '1px solid var(--mantine-color-default-border)',
    fontSize: '14px',
    maxHeight: '60dvh',
    color: 'var(--mantine-color-text)',
    backgroundColor: '#ffffff',
  },
  '.cm-content': { caretColor: '#000000', color: '#1a1b1e' },
  '.cm-gutters': { color: '#495057', backgroundColor: '#f1f3f5' },
  '.cm-scroller': { overflow: 'auto' },
});
