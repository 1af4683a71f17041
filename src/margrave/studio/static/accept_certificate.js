// A certificate as a document, and the files that go with it.
// @ts-check

import { get } from './api.js';
import { DownloadLink, html, plural, SmallMatrix, useLoad } from './kit.js';

/** @typedef {import('./types.js').Accepted} Accepted */
/** @typedef {import('./types.js').Studio} Studio */
/** @typedef {import('./types.js').Act} Act */

/** A confidence as a percentage, in full: 95%, 99.9%. @param {number} confidence */
export const sureText = (confidence) => `${Number((100 * confidence).toFixed(6))}%`;

/**
 * A model that was accepted.
 * @param {{accepted: Accepted, root: string, act: Act}} props
 */
export function Certificate({ accepted, root, act }) {
  const files = `${root}/accepted/${accepted.number}`;
  const name = `certificate-${accepted.number}-title`;
  const n = accepted.confusion.counts.flat().reduce((sum, one) => sum + one, 0);
  return html`<article class="certificate" aria-labelledby=${name}>
    <div class="certificate-sheet">
      <header>
        <p class="certificate-kind">Certificate ${accepted.number}</p>
        <p class="muted">${accepted.issued}</p>
      </header>
      <h3 id=${name}>With ${sureText(accepted.confidence)} confidence, on new samples like these:</h3>
      <ul class="certificate-guarantees">
        ${accepted.guarantees.map((one) => html`<li><${Promised} text=${one} /></li>`)}
      </ul>
      <div class="certificate-ground">
        <${SmallMatrix} matrix=${accepted.confusion} caption=${`The certify samples by certificate ${accepted.number}`} />
        <dl>
          <div><dt>Set on</dt><dd>${plural(n, 'sample')} no step had seen</dd></div>
          <div><dt>By</dt><dd>${accepted.route}</dd></div>
          <div><dt>Promised</dt><dd class="mono">${accepted.preference}</dd></div>
          <div>
            <dt>Model of</dt>
            <dd>
              <button type="button" class="link" disabled=${act.busy} onClick=${() => act.goto(accepted.step)}>
                step ${accepted.step}
              </button>
            </dd>
          </div>
        </dl>
      </div>
      ${accepted.remarks.length
        ? html`<ul class="certificate-remarks">${accepted.remarks.map((one) => html`<li>${one}</li>`)}</ul>`
        : null}
    </div>
    <div class="downloads">
      <${DownloadLink} href=${`${files}/model.skops`} name="model.skops" note="for scikit-learn">Model<//>
      ${accepted.onnx
        ? html`<${DownloadLink} href=${`${files}/model.onnx`} name="model.onnx" note="runs without Python">ONNX<//>`
        : null}
      <${DownloadLink} href=${`${files}/card.md`} name="card.md" note="Markdown">Model card<//>
      <${DownloadLink} href=${`${files}/certificate.json`} name="certificate.json" note="JSON">Certificate<//>
    </div>
    ${accepted.onnx ? null : html`<${NoOnnx} />`}
    <details>
      <summary>As text</summary>
      <pre class="scroll-x" tabindex="0">${accepted.text}</pre>
    </details>
  </article>`;
}

/**
 * "at most 2 % of nonspam called spam (4 of 558 certify samples, 0.72%)": the guarantee large, the count small.
 * @param {{text: string}} props
 */
function Promised({ text }) {
  const found = /^(.*) (\([^()]* certify samples?, [^()]*\))$/.exec(text);
  if (!found) return html`<strong>${text}</strong>`;
  return html`<strong>${found[1]}</strong> <span class="muted">${found[2].slice(1, -1)}</span>`;
}

/** Why there is no ONNX file. */
function NoOnnx() {
  const { data } = useLoad((signal) => get('/api/studio', signal), []);
  const studio = /** @type {Studio | null} */ (data);
  if (!studio) return null;
  return html`<p class="muted small">
    There is no ONNX file:
    ${studio.onnx
      ? ' a part of this model has no form in ONNX.'
      : ' what writes it is not installed where the studio runs (the extra “onnx” of margrave).'}
  </p>`;
}
