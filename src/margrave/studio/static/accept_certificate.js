// A certificate, and the files of its model.
// @ts-check

import { RateMatrix } from './accept_expected.js';
import { get } from './api.js';
import { goalText, stepOf } from './dialog_state.js';
import { count, DownloadLink, html, Notice, plural, rate, rowTotals, SmallMatrix, useLoad } from './kit.js';
import { errorsOf, totalsOf } from './matrix_counts.js';

/** @typedef {import('./types.js').Accepted} Accepted */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Studio} Studio */
/** @typedef {import('./types.js').Act} Act */

/** A confidence as a percentage, in full: 95%, 99.9%. @param {number} confidence */
export const confidenceText = (confidence) => `${Number((100 * confidence).toFixed(6))}%`;

/**
 * A certified model and its certificate: first what is guaranteed, what it costs, and the model, or why it is useless.
 * Readers of a link get no model files.
 * @param {{dialog: Dialog, accepted: Accepted, root: string, act: Act}} props
 */
export function Certificate({ dialog, accepted, root, act }) {
  const files = `${root}/accepted/${accepted.number}`;
  const name = `certificate-${accepted.number}-title`;
  const { n } = totalsOf(accepted.confusion);
  const { useless } = accepted;
  const nearest = accepted.expected?.nearest;
  const guarantees = html`<ul class="certificate-guarantees">
    ${accepted.guarantees.map((one) => html`<li><${Guarantee} text=${one} /></li>`)}
  </ul>`;
  return html`<article class=${`certificate ${useless.length ? 'certificate-useless' : ''}`} aria-labelledby=${name}>
    <div class="certificate-sheet">
      <header>
        <p class="certificate-kind">Certificate ${accepted.number}</p>
        <p class="muted">${accepted.issued}</p>
      </header>
      ${useless.length
        ? html`<h3 id=${name} class="certificate-verdict">Certified, but ${useless.join('; ')}</h3>`
        : html`<h3 id=${name}>Guaranteed with a confidence of ${confidenceText(accepted.confidence)}</h3>
            ${guarantees}`}
      ${accepted.errors ? html`<p class="certificate-cost">${accepted.errors}</p>` : null}
      ${useless.length && nearest
        ? html`<${Notice} kind="warn" title="The nearest limits that probably give a useful model">
            <code>${nearest}</code>${dialog.used_up ? '. To certify them, use new labelled rows.' : ''}
          <//>`
        : null}
      ${dialog.read_only
        ? null
        : html`<div class="downloads">
            <${DownloadLink} href=${`${files}/model.skops`} name="model.skops" note="for scikit-learn">Model<//>
            <${Onnx} accepted=${accepted} href=${`${files}/model.onnx`} />
            <${DownloadLink} href=${`${files}/card.md`} name="card.md" note="Markdown">Model card<//>
            <${DownloadLink} href=${`${files}/certificate.json`} name="certificate.json" note="JSON">Certificate<//>
          </div>`}
      <p class="muted small">${accepted.meaning}${useless.length ? ':' : '.'}</p>
      ${useless.length ? guarantees : null}
      <div class="certificate-ground">
        <div class="foreseen-matrices">
          <figure class="foreseen-matrix">
            <figcaption class="small"><strong>On the certification set</strong></figcaption>
            <${SmallMatrix} matrix=${accepted.confusion} caption=${`Confusion matrix on the certification set, certificate ${accepted.number}`} />
          </figure>
          ${accepted.expected
            ? html`<${RateMatrix} cells=${accepted.expected.cells} of="rate" caption="Expected before certifying" />`
            : null}
        </div>
        <dl>
          ${ratesOf(accepted.confusion).map(
            ([name, some, all]) => html`<div><dt>${name}</dt><dd>${count(some)} of ${count(all)}, ${rate(some, all)}</dd></div>`,
          )}
          <div><dt>Measured on</dt><dd>the certification set, ${plural(n, 'row')}</dd></div>
          <div><dt>Method</dt><dd>${accepted.route}</dd></div>
          <div><dt>Requested</dt><dd class="mono">${accepted.preference}</dd></div>
          <div><dt>Then</dt><dd>${goalText({ goal: accepted.goal, goals: stepOf(dialog, accepted.step)?.goals ?? [] })}</dd></div>
          <div>
            <dt>Model</dt>
            <dd>
              ${dialog.read_only
                ? `step ${accepted.step}`
                : html`<button type="button" class="link" disabled=${act.busy} onClick=${() => act.goto(accepted.step)}>
                    step ${accepted.step}
                  </button>`}
            </dd>
          </div>
        </dl>
      </div>
      <p class="muted small">
        Certifying adjusts the decision of step ${accepted.step} on the certification set, so that the limits hold for new
        rows. These numbers are from the certification set; the matrix of step ${accepted.step} is from the tuning set.
      </p>
      ${accepted.remarks.length
        ? html`<ul class="certificate-remarks">${accepted.remarks.map((one) => html`<li>${one}</li>`)}</ul>`
        : null}
    </div>
    <details>
      <summary>As text</summary>
      <pre class="scroll-x" tabindex="0">${accepted.text}</pre>
    </details>
  </article>`;
}

/**
 * The errors of a matrix, each with the number of rows that it is counted on: of two classes, both kinds.
 * @param {Matrix} matrix @returns {[string, number, number][]}
 */
function ratesOf(matrix) {
  const { n, errors, rejected } = totalsOf(matrix);
  const { classes, positive } = matrix;
  /** @type {[string, number, number][]} */
  const last = rejected ? [['Rejected', rejected, n]] : [];
  if (positive === null || classes.length > 2) return [['Errors', errors, n], ...last];
  const { fp, fn } = errorsOf(matrix, positive);
  const positives = rowTotals(matrix)[classes.indexOf(positive)];
  return [['False positives', fp, n - positives], ['False negatives', fn, positives], ...last];
}

/**
 * "at most 2% of nonspam predicted spam (4 of 558 in the certification set, 0.72%)": the guarantee large, the
 * count small.
 * @param {{text: string}} props
 */
function Guarantee({ text }) {
  const parts = /^(.*) \(([\d,]+ of [^()]*%)\)$/.exec(text);
  if (!parts) return html`<strong>${text}</strong>`;
  return html`<strong>${parts[1]}</strong> <span class="muted">${parts[2]}</span>`;
}

/**
 * The ONNX file, or why there is none. `onnx` is null if the studio had no means to tell when it certified the model.
 * @param {{accepted: Accepted, href: string}} props
 */
function Onnx({ accepted, href }) {
  const { data } = useLoad((signal) => get('/api/studio', signal), []);
  const studio = /** @type {Studio | null} */ (data);
  if (accepted.onnx || (accepted.onnx === null && studio?.onnx)) {
    return html`<${DownloadLink} href=${href} name="model.onnx" note="runs without Python">ONNX<//>`;
  }
  if (!studio) return null;
  return html`<p class="muted small">
    There is no ONNX file:
    ${studio.onnx
      ? ' a part of this model cannot be converted.'
      : ' the studio runs without the extra “onnx” of margrave.'}
  </p>`;
}
