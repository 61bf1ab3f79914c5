// The dialog that takes numbers from elsewhere.

import { signal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { fit } from '../paste/fit';
import { parse, PasteError, type Pasted } from '../paste/parse';
import { operation, patch, state } from '../state/state';
import { Complaint } from './Complaint';
import { Dialog } from './Dialog';

const shown = signal(false);
const target = signal<string | null>(null);
const text = signal('');
const refit = signal(true);

export function openPaste(input: string | null): void {
  target.value = input;
  text.value = '';
  shown.value = true;
}

export function Paste() {
  return (
    <Dialog shown={shown} heading="paste-heading">
      <Body />
    </Dialog>
  );
}

function Body() {
  const read = useMemo((): { pasted: Pasted | null; complaint: PasteError | null } => {
    if (text.value.trim() === '') return { pasted: null, complaint: null };
    try {
      return { pasted: parse(text.value), complaint: null };
    } catch (error) {
      if (error instanceof PasteError) return { pasted: null, complaint: error };
      throw error;
    }
  }, [text.value]);
  const fitted = read.pasted ? fit(operation.value, state.value, read.pasted, target.value, refit.value) : null;
  const unnamed = read.pasted?.has('') === true && target.value === null;
  const box = useRef<HTMLTextAreaElement>(null);
  const usable = fitted !== null && fitted.unknown.length < (read.pasted?.size ?? 0);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (usable) patch({ inputs: fitted!.inputs });
        shown.value = false;
      }}
    >
      <h2 id="paste-heading">Paste numbers</h2>
      <p class="quiet">
        JSON, CSV with names in the first row, cells of a spreadsheet, or what Python, NumPy and torch print. Several
        arrays at once where they have names: <code>log_prob = tensor([[-1.2, -0.4]])</code>
      </p>
      <label class="field">
        <span>Into</span>
        <select value={target.value ?? ''} onChange={(event) => (target.value = event.currentTarget.value || null)}>
          <option value="">the inputs that the text names</option>
          {operation.value.inputs.map((input) => (
            <option key={input.name} value={input.name}>
              {input.name}
            </option>
          ))}
        </select>
      </label>
      <textarea
        ref={box}
        rows={9}
        spellcheck={false}
        autofocus
        aria-label="Numbers"
        aria-invalid={read.complaint !== null}
        aria-describedby="paste-report"
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <div id="paste-report" class="report" role="status">
        {read.complaint && <Complaint message={read.complaint.message} place={read.complaint.place} box={box} />}
        {unnamed && <p class="complaint">The text names no input: choose above where its numbers go.</p>}
        {fitted &&
          [...read.pasted!].map(([name, array]) => (
            <p key={name} class={fitted.unknown.includes(name) ? 'quiet' : ''}>
              <code>{name || target.value || 'numbers'}</code> [{array.shape.join(' × ')}]
              {fitted.unknown.includes(name) && name !== '' ? `: ${operation.value.id} has no such input, left out` : ''}
            </p>
          ))}
        {fitted && fitted.refitted.length > 0 && (
          <p class="quiet">Other sizes, with example numbers in new slots: {fitted.refitted.join(', ')}</p>
        )}
      </div>
      <label class="switch">
        <input type="checkbox" checked={refit.value} onChange={(event) => (refit.value = event.currentTarget.checked)} />
        <span>fit the other inputs to these sizes</span>
      </label>
      <div class="dialog-actions">
        <button type="button" onClick={() => (shown.value = false)}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={!usable}>
          Use these numbers
        </button>
      </div>
    </form>
  );
}
