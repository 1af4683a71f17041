// The summary of a matrix: total errors, accuracy and rejected rows, compared with an earlier step.
// @ts-check

import { count, html, plural, points, rate, signed, useState } from './kit.js';
import { totalsOf } from './matrix_counts.js';

/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {"start" | "previous"} Since */

const SINCE_KEY = 'margrave-summary-since';
const NEXT = 'Lower a cell that has too many errors, or raise a correct one; the preview shows the cost.';

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

/** What the numbers are compared with, as last chosen. @returns {[Since, (to: Since) => void]} */
export function useSince() {
  const [since, setSince] = useState(
    /** @type {Since} */ (localStorage.getItem(SINCE_KEY) === 'start' ? 'start' : 'previous'),
  );
  /** @param {Since} to */
  const choose = (to) => {
    setSince(to);
    localStorage.setItem(SINCE_KEY, to);
  };
  return [since, choose];
}

/**
 * @param {{now: Matrix, base: Matrix, since: Since, setSince: (to: Since) => void, first: boolean, mark: string}} props
 *   `base`: what `now` is compared with; `first`: the current step is the start; `mark`: stands before the numbers of a preview, otherwise ""
 */
export function Summary({ now, base: earlier, since, setSince, first, mark }) {
  const totals = totalsOf(now);
  const base = totalsOf(earlier);
  const compared = mark !== '' || !first;
  const rise = totals.errors - base.errors;
  const about = mark && `${mark} `;
  const tone = rise > 0 ? 'warn' : rise < 0 ? 'good' : 'muted';
  const predicted = totals.n - totals.rejected;
  const choices = /** @type {const} */ ([
    ['start', 'since start'],
    ['previous', mark ? 'since this step' : 'since previous step'],
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
        difference=${compared ? `${points((totals.correct - base.correct) / totals.n)} points` : ''}
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
          ${
            first
              ? null
              : html`<div class="switch" role="group" aria-label="Compare">
                ${choices.map(
                  ([name, text]) =>
                    html`<button key=${name} type="button" aria-pressed=${since === name} onClick=${() => setSince(name)}>
                      ${text}
                    </button>`,
                )}
              </div>`
          }
          ${rise > 0 ? html`<span class="summary-warning">${plural(rise, 'error')} more in total</span>` : null}
        </div>`
        : html`<p class="summary-foot muted small">${NEXT}</p>`
    }
  </section>`;
}
