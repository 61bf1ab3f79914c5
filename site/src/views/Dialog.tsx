// A modal dialog that a signal opens and closes.

import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

export function Dialog({ shown, heading, children }: { shown: Signal<boolean>; heading: string; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (shown.value && !dialog.current?.open) dialog.current?.showModal();
    if (!shown.value && dialog.current?.open) dialog.current.close();
  }, [shown.value]);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={heading} onClose={() => (shown.value = false)}>
      {shown.value && children}
    </dialog>
  );
}
