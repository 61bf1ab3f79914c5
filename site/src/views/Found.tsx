// What a search found, in plain words.

import { batch, useSignal } from '@preact/signals';
import { findOperation } from '../catalog/catalog';
import type { Answer } from '../compute/identify';
import { short } from '../numbers/format';
import { open, patch } from '../state/state';
import { Pager } from './Pager';
import { Prose } from './Prose';

type Fit = Answer['fits'][number];
type Name = Fit['names'][number];

/** Points that are shown at once. */
const PAGE = 12;

export function Found({ answer, onLonger }: { answer: Answer; onLonger: () => void }) {
  const from = useSignal(0);
  const { conclusion, fits, nearest, printed, meant } = answer;
  return (
    <section class="card found" aria-labelledby="answer-heading" data-conclusion={conclusion}>
      <h2 id="answer-heading">Answer</h2>
      <p class="conclusion" role="status">
        {told(answer)}
      </p>
      {meant && answer.meant_value !== null && conclusion !== 'known' && (
        <p>
          {titleOf(meant)} gives {numeral(answer.meant_value)} on this batch; printed was {numeral(printed.value)}.
        </p>
      )}
      {fits.length > 0 && (
        <ol class="points" start={from.value + 1}>
          {fits.slice(from.value, from.value + PAGE).map((fit, index) => (
            <li key={from.value + index} data-fit>
              <Point {...fit} />
              <span class="quiet">{gradientOf(fit)}</span>
            </li>
          ))}
        </ol>
      )}
      {fits.length > PAGE && (
        <Pager from={from.value} rows={fits.length} page={PAGE} onFirst={(first) => (from.value = first)}>
          {from.value + 1} to {Math.min(fits.length, from.value + PAGE)} of {fits.length}
        </Pager>
      )}
      {nearest.length > 0 && (
        <>
          <h3>The closest</h3>
          <ol class="points">
            {nearest.map((near, index) => (
              <li key={index} data-near>
                <Point {...near} />
              </li>
            ))}
          </ol>
        </>
      )}
      {answer.tells_apart && (
        <p>
          <Prose>{answer.tells_apart}</Prose>
        </p>
      )}
      {answer.notes.map((note) => (
        <p key={note} class="quiet">
          <Prose>{note}</Prose>
        </p>
      ))}
      <p class="quiet">
        {answer.batch}; {answer.tried} points tried, compared to {printed.precision}
        {Number(answer.expected_by_chance) >= 0.5 ? `; about ${short(Number(answer.expected_by_chance))} of them would give so few digits by chance` : ''}
        .
      </p>
      {answer.left_out > 0 && (
        <p>
          {answer.left_out} more points were left out, because the batch is large.{' '}
          <button type="button" class="small" onClick={onLonger}>
            Search longer
          </button>
        </p>
      )}
    </section>
  );
}

function told({ conclusion, fits, cannot_tell: cannotTell, meant }: Answer): string {
  if (conclusion === 'unknown') return 'Nothing that was tried gives this number.';
  if (conclusion === 'gradient-differs') return 'The loss is known; the gradient is not the one that belongs to it.';
  const names = fits.flatMap((fit) => fit.names);
  const name = titleOf(names.find(({ operation }) => operation === meant?.operation) ?? names[0]!);
  const known = meant ? `It is ${name}, as it is meant to be` : `It is ${name}`;
  const changed = meant ? `It is not ${titleOf(meant)}` : `It is close to ${name}, with a change`;
  const many = fits.length > 1 ? `; this batch does not tell ${fits.length} candidates apart` : cannotTell ? '; so few digits may fit by chance' : '';
  return `${conclusion === 'known' ? known : changed}${many}.`;
}

function Point({ names, text, value }: Pick<Fit, 'names' | 'text' | 'value'>) {
  return (
    <>
      {names.map((name, index) => (
        <span key={index}>
          {index > 0 && ', '}
          <Link name={name} />
        </span>
      ))}
      {text !== '' && (
        <strong>
          {' '}
          if <Prose>{text}</Prose>
        </strong>
      )}
      <span class="quiet">: {numeral(value)}</span>
    </>
  );
}

function Link({ name }: { name: Name }) {
  const show = (event: Event) => {
    event.preventDefault();
    batch(() => {
      open(findOperation(name.operation)!);
      patch({ dialect: name.dialect });
    });
  };
  return (
    <>
      <a class="link" href={`#${name.operation}`} onClick={show}>
        {titleOf({ ...name, dialect: null })}
      </a>
      {name.dialect && ` (${name.dialect})`}
    </>
  );
}

function titleOf({ operation, dialect }: Name): string {
  const title = findOperation(operation)?.title ?? operation;
  return dialect ? `${title} (${dialect})` : title;
}

function gradientOf({ gradient, gradient_difference: difference }: Fit): string {
  if (gradient === 'same') return '; the gradient is its gradient';
  if (gradient === 'not compared') return '; its gradient was not compared: the batch is too large for differences';
  return difference ? `; ${difference}` : '';
}

function numeral(value: number | string | null): string {
  return typeof value === 'number' ? short(value) : String(value);
}
