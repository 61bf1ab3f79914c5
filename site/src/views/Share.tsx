// The state as a link.

import { useSignal } from '@preact/signals';
import { toHash } from '../state/link';
import { state } from '../state/state';

export function Share() {
  const said = useSignal('');
  const share = async () => {
    const hash = toHash(state.value);
    if (hash === null) {
      said.value = 'too large for a link; copy the JSON vector instead';
      return;
    }
    try {
      await navigator.clipboard.writeText(new URL(hash, location.href).href);
      said.value = 'link copied';
    } catch {
      said.value = 'the link stands in the address bar';
    }
  };
  return (
    <>
      <button type="button" class="primary" onClick={share} title="Copy a link that holds all of this">
        Copy link
      </button>
      <span class="said" role="status">
        {said.value}
      </span>
    </>
  );
}
