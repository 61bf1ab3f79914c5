// One formula: what it is, its parameters, what comes out, and the numbers.

import { words } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { Plots } from '../plots/Plots';
import { state } from '../state/state';
import { Compare } from './Compare';
import { Data } from './Data';
import { Formula } from './Formula';
import { Parameters } from './Parameters';
import { Prose } from './Prose';
import { ResultCard } from './Result';

export function FormulaPage({ operation }: { operation: Operation }) {
  return (
    <article class="formula-page" key={operation.id} data-operation={operation.id}>
      <header class="title">
        <p class="where">
          {words(operation.family)} · <code>{operation.id}</code>
        </p>
        <h1>{operation.title}</h1>
        <p class="summary">{operation.summary}</p>
      </header>
      <div class="columns">
        <ResultCard operation={operation} />
        <div class="left">
          <Parameters operation={operation} />
        </div>
        <div class="right">
          <Formula operation={operation} setup={state.value} />
          <Plots operation={operation} />
        </div>
      </div>
      <Data operation={operation} />
      <Compare operation={operation} />
      <About operation={operation} />
    </article>
  );
}

function About({ operation }: { operation: Operation }) {
  return (
    <section class="card about" aria-labelledby="about-heading">
      <h2 id="about-heading">About</h2>
      {operation.notes !== '' && (
        <p>
          <Prose>{operation.notes}</Prose>
        </p>
      )}
      <details>
        <summary>What the names mean</summary>
        <dl class="names">
          {[...operation.inputs, ...operation.outputs].map((entry, index) => (
            <div key={index}>
              <dt>
                <code>{entry.name}</code>
              </dt>
              <dd>
                <Prose>{entry.meaning}</Prose>
              </dd>
            </div>
          ))}
        </dl>
      </details>
      <h3>Sources</h3>
      <ul class="sources">
        {operation.sources.map((source) => (
          <li key={source.reference}>
            {source.title}. <span class="quiet">{source.reference}</span>
            {source.place !== '' && <>, {source.place}</>}
          </li>
        ))}
      </ul>
    </section>
  );
}
