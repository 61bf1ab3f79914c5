// "The same bits as native": a hash of all result bits, computed here, and the command that computes it elsewhere.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Operation } from '../catalog/types';
import { command } from '../copy/json';
import { bits } from '../numbers/format';
import { result, state } from '../state/state';

/** One line for each output, `name` and its bits: what the hash is of. */
export function canonical(operation: Operation, outputs: Record<string, { data: Float64Array }>, dtype: 'f32' | 'f64'): string {
  return operation.outputs
    .filter((output) => outputs[output.name])
    .map((output) => `${output.name} ${Array.from(outputs[output.name]!.data, (value) => bits(value, dtype)).join(' ')}\n`)
    .join('');
}

export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function SameBits({ operation }: { operation: Operation }) {
  const shown = useSignal(false);
  return (
    <details class="same-bits" onToggle={(event) => (shown.value = event.currentTarget.open)}>
      <summary>The same bits on your machine</summary>
      {shown.value && <Body operation={operation} />}
    </details>
  );
}

function Body({ operation }: { operation: Operation }) {
  const hash = useSignal('');
  const { outputs } = result.value;
  const { dtype } = state.value;
  useEffect(() => {
    let current = true;
    if (outputs && globalThis.crypto?.subtle) {
      sha256(canonical(operation, outputs, dtype)).then((next) => {
        if (current) hash.value = next;
      });
    }
    return () => {
      current = false;
    };
  }, [outputs, dtype]);
  if (!outputs) return null;
  const json = command(operation, state.value).trim().replace(/ --grad --hex$/, ' --grad --hex --json');
  return (
    <>
      <p>
        SHA-256 of all result bits, computed in this browser: <output class="hash">{hash.value}</output>
      </p>
      <p class="quiet">The same from the native command, in a terminal where `plumbline` and Python are:</p>
      <textarea
        readOnly
        rows={4}
        wrap="off"
        spellcheck={false}
        aria-label="Command that computes the hash"
        value={`${json} | python3 -c "import hashlib, json, sys; print(hashlib.sha256(''.join(name + ' ' + ' '.join(array['bits']) + chr(10) for name, array in json.load(sys.stdin)['outputs'].items()).encode()).hexdigest())"`}
      />
    </>
  );
}
