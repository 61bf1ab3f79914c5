// The state as code, a vector, or a trainer's settings.

import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Operation } from '../catalog/types';
import type { Outputs } from '../compute/evaluate';
import { isConfigurable, trl, verl } from '../copy/configuration';
import { command, vector } from '../copy/json';
import { python } from '../copy/python';
import { rust } from '../copy/rust';
import { operation, result, state, type State } from '../state/state';
import { Dialog } from './Dialog';

interface Format {
  name: string;
  applies: (operation: Operation) => boolean;
  write: (operation: Operation, state: State, outputs: Outputs) => string;
}

const always = () => true;

export const FORMATS: Format[] = [
  { name: 'Python (torch)', applies: always, write: python },
  { name: 'Rust', applies: always, write: rust },
  { name: 'JSON vector', applies: always, write: vector },
  { name: 'TRL', applies: isConfigurable, write: trl },
  { name: 'verl', applies: isConfigurable, write: verl },
  { name: 'Command line', applies: always, write: command },
];

const shown = signal(false);
const chosen = signal(FORMATS[0]!.name);
const said = signal('');

export function openCopy(): void {
  said.value = '';
  shown.value = true;
}

export function Copy() {
  return (
    <Dialog shown={shown} heading="copy-heading">
      <Body />
    </Dialog>
  );
}

function Body() {
  const formats = FORMATS.filter(({ applies }) => applies(operation.value));
  const format = formats.find(({ name }) => name === chosen.value) ?? formats[0]!;
  const { outputs } = result.value;
  const text = useMemo(() => (outputs ? format.write(operation.value, state.value, outputs) : ''), [format, outputs]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = 'copied';
    } catch {
      said.value = 'the browser refuses; select the text and copy it';
    }
  };
  return (
    <>
      <h2 id="copy-heading">Copy as</h2>
      <div class="chips" role="radiogroup" aria-label="Format">
        {formats.map(({ name }) => (
          <label key={name} class="chip">
            <input
              type="radio"
              name="format"
              checked={name === format.name}
              onChange={() => {
                chosen.value = name;
                said.value = '';
              }}
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
      {outputs ? (
        <textarea readOnly rows={16} spellcheck={false} wrap="off" aria-label={`As ${format.name}`} value={text} />
      ) : (
        <p class="refusal">There is no result to copy: {result.value.refusal?.message}</p>
      )}
      <div class="dialog-actions">
        <span class="said" role="status">
          {said.value}
        </span>
        <button type="button" onClick={() => (shown.value = false)}>
          Close
        </button>
        <button type="button" class="primary" disabled={!outputs} onClick={copy}>
          Copy
        </button>
      </div>
    </>
  );
}
