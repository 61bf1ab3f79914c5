// Your framework's batch and the loss that it printed: which formula, variant or mistake that is.

import { batch, signal, useComputed } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { families, words } from '../catalog/catalog';
import type { Refusal } from '../compute/evaluate';
import { search, type Answer, type Progress, type Question } from '../compute/identify';
import { exact } from '../numbers/format';
import { parse, PasteError, type Pasted } from '../paste/parse';
import { operation, result, state } from '../state/state';
import { Complaint } from './Complaint';
import { Found } from './Found';

const text = signal('');
const loss = signal('');
const meant = signal('');
const stop = signal<(() => void) | null>(null);
const progress = signal<Progress | null>(null);
const answer = signal<Answer | null>(null);
const refusal = signal<Refusal | null>(null);
/** What the search is about: a refusal and an answer are about this, whatever has been typed since. */
const asked = signal<{ question: Question; pasted: Pasted; text: string } | null>(null);

/** How many numbers a search looks at that is to go on beyond the package's own limit. */
const LONG = 2_000_000_000;

function start(question: Question, pasted: Pasted): void {
  const end = (then: () => void) =>
    batch(() => {
      stop.value = null;
      progress.value = null;
      then();
    });
  batch(() => {
    asked.value = { question, pasted, text: text.value };
    answer.value = null;
    refusal.value = null;
    stop.value = search(question, {
      onProgress: (next) => (progress.value = next),
      onAnswer: (next) => end(() => (answer.value = next)),
      onRefusal: (next) => end(() => (refusal.value = next)),
    });
  });
}

function cancel(): void {
  stop.value?.();
  stop.value = null;
  progress.value = null;
}

/** The page's numbers as a text that this view reads. */
function takeOver(): void {
  const { inputs, dtype } = state.value;
  const array = (name: string, shape: number[], data: Float64Array) => `${name} = ${nested(shape, Array.from(data, (value) => exact(value, dtype)))}`;
  const lines = Object.entries(inputs).map(([name, { shape, data }]) => array(name, shape, data));
  const main = result.value.outputs?.[operation.value.outputs[0]!.name];
  const isOne = main?.shape.length === 0;
  if (main && !isOne) lines.push(array('output', main.shape, main.data));
  batch(() => {
    text.value = lines.join('\n');
    loss.value = isOne ? exact(main.data[0]!, dtype) : '';
    meant.value = '';
  });
}

function nested(shape: number[], numbers: string[]): string {
  if (shape.length === 0) return numbers[0]!;
  const [size, ...inner] = shape;
  const step = numbers.length / Math.max(1, size!);
  const members = Array.from({ length: size! }, (_, index) => nested(inner, numbers.slice(index * step, (index + 1) * step)));
  return `[${members.join(', ')}]`;
}

export function Identify() {
  const box = useRef<HTMLTextAreaElement>(null);
  const read = useComputed((): { pasted: Pasted | null; complaint: PasteError | null } => {
    if (text.value.trim() === '') return { pasted: null, complaint: null };
    try {
      const pasted = parse(text.value);
      const unnamed = pasted.get('');
      if (unnamed) throw new PasteError('give each array its name: log_prob = …', text.value, unnamed.places[0] ?? 0);
      return { pasted, complaint: null };
    } catch (error) {
      if (error instanceof PasteError) return { pasted: null, complaint: error };
      throw error;
    }
  });
  const { pasted, complaint } = read.value;
  const running = stop.value !== null;
  const ask = () => {
    if (running) return cancel();
    const printed = loss.value.trim();
    const inputs = Object.fromEntries([...pasted!].map(([name, { shape, data, unit }]) => [name, { shape, data, unit }]));
    start({ inputs, ...(printed ? { loss: printed } : {}), ...(meant.value ? { operation: meant.value } : {}) }, pasted!);
  };
  return (
    <article class="identify map">
      <header class="title">
        <h1>Identify a loss</h1>
        <p class="summary">
          Paste one batch and what your framework printed for it. The search says which formula in which dialect gives that
          number, or which change of one does.
        </p>
      </header>
      <form
        class="card"
        aria-labelledby="batch-heading"
        onSubmit={(event) => {
          event.preventDefault();
          if (pasted) ask();
        }}
      >
        <div class="card-head">
          <h2 id="batch-heading">Your batch</h2>
          <button type="button" onClick={takeOver}>
            Take the numbers of {operation.value.title}
          </button>
        </div>
        <p class="quiet" id="batch-help">
          Arrays by name, as the catalog has them (<code>log_prob</code>, <code>old_log_prob</code>, <code>advantage</code>,{' '}
          <code>mask</code>) or as frameworks do (<code>logprobs</code>, <code>response_mask</code>); the gradient too, where
          you have it, as <code>d_log_prob</code> or <code>grad</code>. JSON, or what Python, NumPy and torch print with all
          digits. Nothing leaves this page.
        </p>
        <textarea
          ref={box}
          rows={10}
          spellcheck={false}
          wrap="off"
          aria-label="Batch"
          aria-describedby="batch-help batch-report"
          aria-invalid={complaint !== null}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        <div id="batch-report" class="report" role="status">
          {complaint && <Complaint message={complaint.message} place={complaint.place} box={box} />}
          {pasted && [...pasted].map(([name, { shape }]) => `${name} [${shape.join(' × ')}]`).join(', ')}
        </div>
        <div class="fields">
          <label class="field">
            <span>Printed loss, with all its digits</span>
            <input
              type="text"
              inputMode="decimal"
              autocomplete="off"
              spellcheck={false}
              aria-label="Printed loss"
              aria-invalid={refusal.value?.argument === 'loss'}
              placeholder="-0.1234"
              value={loss.value}
              onInput={(event) => (loss.value = event.currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>It is meant to be</span>
            <select aria-label="Meant formula" value={meant.value} onChange={(event) => (meant.value = event.currentTarget.value)}>
              <option value="">not said</option>
              {families().map(([family, operations]) => (
                <optgroup key={family} label={words(family)}>
                  {operations.map(({ id, title }) => (
                    <option key={id} value={id}>
                      {title}
                    </option>
                  ))}
                </optgroup>
              ))}
            </select>
          </label>
          <button type="submit" class="primary" disabled={!running && !pasted}>
            {running ? 'Stop' : 'Identify'}
          </button>
        </div>
        {running && <Searching />}
        {refusal.value && (
          <div class="refusal" role="alert">
            <Complaint message={refusal.value.message} place={placeOf(refusal.value)} box={box} />
          </div>
        )}
      </form>
      {answer.value && <Found answer={answer.value} onLonger={() => start({ ...asked.value!.question, effort: LONG }, asked.value!.pasted)} />}
      <div class="visually-hidden" role="status">
        {running ? 'Searching' : ''}
      </div>
    </article>
  );
}

function Searching() {
  const { tried, done, of } = progress.value ?? { tried: 0, done: 0, of: 1 };
  return (
    <p class="searching">
      <progress aria-label="Search" max={of} value={done} />
      <span class="quiet">{progress.value ? `${tried} points looked at` : 'the search starts'}</span>
    </p>
  );
}

/** Where in the text the number at fault stands, while it is still that text. */
function placeOf({ argument, index }: Refusal): number | null {
  if (asked.value?.text !== text.value) return null;
  return asked.value.pasted.get(argument ?? '')?.places[index ?? 0] ?? null;
}
