// The summary of a matrix: total errors, accuracy and rejected rows, compared with an earlier step.
// @ts-check

import { count, html, percent, plural, rate, signed, useState } from './kit.js';
import { rejectedOf } from './preview.js';

/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {"start" | "previous"} Since */

const SINCE_KEY = 'margrave-summary-since';
const NEXT = 'Lower a cell that has too many errors; the preview shows the cost.';

/** @param {Matrix} matrix */
export function totalsOf(matrix) {
  const n = matrix.counts.flat().reduce((sum, one) => sum + one, 0);
  const correct = matrix.counts.reduce((sum, row, place) => sum + row[place], 0);
  const rejected = rejectedOf(matrix);
  return { n, correct, rejected, errors: n - correct - rejected };
}

/** A difference of two fractions, in percentage points. @param {number} difference */
const points = (difference) =>
  Math.abs(difference) < 5e-5 ? '±0' : `${difference > 0 ? '+' : '−'}${percent(Math.abs(difference))}`;

/** @param {{name: string, value: string, difference: string, tone: string, more: string}} props */
const Total = ({ name, value, difference, tone, more }) =>
  html`<div class="summary-total">
    <dt>${name}</dt>
    <dd>
      <strong>${value}</strong>${' '}
      ${difference ? html`<span class=${`summary-difference ${tone}`}>${difference}</span>${' '}` : null}
      <span class="muted">${more}</span>
    </dd>
  </div>`;

/**
 * @param {{now: Matrix, start: Matrix, previous: Matrix, first: boolean, previewed: boolean}} props
 *   `first`: the current step is the start; `previewed`: `now` is the preview of a request
 */
export function Summary({ now, start, previous, first, previewed }) {
  const [since, setSince] = useState(
    /** @type {Since} */ (localStorage.getItem(SINCE_KEY) === 'previous' ? 'previous' : 'start'),
  );
  /** @param {Since} to */
  const choose = (to) => {
    setSince(to);
    localStorage.setItem(SINCE_KEY, to);
  };
  const totals = totalsOf(now);
  const base = totalsOf(since === 'start' ? start : previous);
  const compared = previewed || !first;
  const rise = totals.errors - base.errors;
  const about = previewed ? '≈ ' : '';
  const tone = rise > 0 ? 'warn' : rise < 0 ? 'good' : 'muted';
  const predicted = totals.n - totals.rejected;
  const choices = /** @type {const} */ ([
    ['start', 'since start'],
    ['previous', 'since previous step'],
  ]);
  return html`<section class=${`summary ${compared && rise > 0 ? 'summary-rise' : ''}`} aria-label="Summary">
    <dl class="summary-totals">
      <${Total}
        name="Total errors"
        value=${`${about}${count(totals.errors)}`}
        difference=${compared ? signed(rise) : ''}
        tone=${tone}
        more=${rate(totals.errors, totals.n)}
      />
      <${Total}
        name="Accuracy"
        value=${`${about}${rate(totals.correct, totals.n)}`}
        more=${totals.rejected ? `${rate(totals.correct, predicted)} of predicted` : ''}
        difference=${compared ? points((totals.correct - base.correct) / totals.n) : ''}
        tone="muted"
      />
      <${Total}
        name="Rejected"
        value=${`${about}${count(totals.rejected)}`}
        more=${rate(totals.rejected, totals.n)}
        difference=${compared ? signed(totals.rejected - base.rejected) : ''}
        tone="muted"
      />
    </dl>
    ${
      compared
        ? html`<div class="summary-foot">
          <div class="switch" role="group" aria-label="Compare">
            ${choices.map(
              ([name, text]) =>
                html`<button key=${name} type="button" aria-pressed=${since === name} onClick=${() => choose(name)}>
                  ${text}
                </button>`,
            )}
          </div>
          ${rise > 0 ? html`<span class="summary-warning">${plural(rise, 'error')} more in total</span>` : null}
        </div>`
        : html`<p class="summary-foot muted small">${NEXT}</p>`
    }
  </section>`;
}
