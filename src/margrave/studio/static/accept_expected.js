// The certificate that can be expected, before the certification set is used.
// @ts-check

import { Breakable, cellKind, columnText, html, labelText, Notice, percent, tint } from './kit.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').ExpectedCell} ExpectedCell */
/** @typedef {import('./types.js').ExpectedCertificate} ExpectedCertificate */
/** @typedef {import('./types.js').Label} Label */

const [IMPROBABLE, LIKELY] = [0.5, 0.9];

/** Whether a useful model is probably not certified. @param {ExpectedCertificate} expected */
export const isImprobable = ({ useful }) => useful < IMPROBABLE;

/** Why not: the limits are refused, or the model is useless. @param {ExpectedCertificate} expected */
export function describeDoubt({ probability, cells }) {
  if (!probability) return 'These limits will not be certified';
  if (probability < IMPROBABLE) return `These limits are certified with a probability of only ${percent(probability, 0)}`;
  const rates = cells.filter((cell) => cell.true === cell.predicted).map((cell) => ({ ...cell, rate: cell.rate ?? 0 }));
  const worst = rates.reduce((least, cell) => (cell.rate < least.rate ? cell : least));
  const label = labelText(worst.true);
  return `Probably certified, but useless: the model would predict ${label} for ${percent(worst.rate)} of ${label}`;
}

/**
 * How probable a certificate is, and the expected matrix beside that of the tuning set.
 * @param {{expected: ExpectedCertificate, act: Act}} props
 */
export function Expected({ expected, act }) {
  const { probability, useful, nearest, cells } = expected;
  return html`<section class="foreseen" aria-label="Expected certificate">
    ${isImprobable(expected)
      ? html`<${Notice}
          kind="warn"
          title=${`${describeDoubt(expected)}.`}
          action=${nearest
            ? html`<button
                type="button"
                class="button-primary"
                disabled=${act.busy}
                onClick=${() => act.prefer([nearest], { keep: false })}
              >
                Request these limits
              </button>`
            : null}
        >
          <p>
            A useful model is certified with a probability of ${percent(useful, 0)}, if the certification set is like the
            tuning set.
          </p>
          <p>
            ${nearest
              ? html`The nearest limits that probably give a useful model: <code>${nearest}</code>`
              : 'No looser limits probably give a useful model.'}
          </p>
        <//>`
      : html`<p>
            <strong>These limits are certified with a probability of ${probabilityText(probability)}</strong>,
            ${useful < probability ? ` and a useful model with one of ${probabilityText(useful)},` : ''} if the
            certification set is like the tuning set.
          </p>
          ${probability < LIKELY
            ? html`<${Notice} kind="warn">A refusal that has looked at the certification set uses it up.<//>`
            : null}`}
    ${probability > 0
      ? html`<div class="foreseen-matrices">
            <${RateMatrix} cells=${cells} of="tuning" caption="On the tuning set" />
            <${RateMatrix} cells=${cells} of="rate" caption="Expected when certified" />
          </div>
          <p class="muted small">
            Percentages of each true class, with ranges that hold with a probability of 90%. Certifying needs a margin, so
            the certified decision is stricter than that of the tuning set.
          </p>`
      : null}
  </section>`;
}

/** "97.2–98.6%", or "". @param {ExpectedCell} cell */
const rangeText = ({ low, high }) =>
  low === null || high === null ? '' : `${percent(low).slice(0, -1)}–${percent(high)}`;

/** A simulated probability is never sure. @param {number} probability */
const probabilityText = (probability) => (probability > 0.99 ? 'more than 99%' : percent(probability, 0));

/**
 * A confusion matrix in percentages of the true classes, without the rejected column if it is empty.
 * @param {{cells: ExpectedCell[], of: "tuning" | "rate", caption: string}} props
 */
export function RateMatrix({ cells, of, caption }) {
  const classes = [...new Set(cells.map((cell) => cell.true))];
  const rejects = cells.some((cell) => cell.predicted === null && Math.max(cell.tuning, cell.high ?? 0) > 0);
  /** @type {(Label | null)[]} */
  const columns = [...classes, ...(rejects ? [null] : [])];
  const matrix = { classes, positive: null, counts: [] };
  return html`<figure class="foreseen-matrix">
    <figcaption class="small"><strong>${caption}</strong></figcaption>
    <div class="scroll-x" tabindex="0" role="group" aria-label=${caption}>
      <table class="small-matrix">
        <thead>
          <tr>
            <td></td>
            ${columns.map((predicted) => html`<th scope="col"><${Breakable} text=${columnText(predicted)} /></th>`)}
          </tr>
        </thead>
        <tbody>
          ${classes.map(
            (label, row) => html`<tr>
              <th scope="row"><${Breakable} text=${`true ${labelText(label)}`} /></th>
              ${columns.map((predicted, column) => {
                const cell = cells.find((one) => one.true === label && one.predicted === predicted);
                const fraction = cell?.[of] ?? null;
                const at = predicted === null ? classes.length : column;
                return html`<td class=${`cell-${cellKind(matrix, row, at)}`} style=${{ '--tint': tint(fraction ?? 0) }}>
                  <b>${fraction === null ? '–' : percent(fraction)}</b>
                  ${of === 'rate' && cell ? html`<small>${rangeText(cell)}</small>` : null}
                </td>`;
              })}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </figure>`;
}
