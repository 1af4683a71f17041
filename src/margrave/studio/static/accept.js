// The panel "Certify & export": the requested guarantee, the certification set, the certificates, and the downloads.
// @ts-check

import { Certificate, confidenceText } from './accept_certificate.js';
import { describeDoubt, Expected, isImprobable } from './accept_expected.js';
import { get, query } from './api.js';
import { stepOf } from './dialog_state.js';
import { count, DownloadLink, Empty, Field, html, labelText, Modal, Notice, plural, sentence, Spinner, useLoad, useState } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').ExpectedCertificate} ExpectedCertificate */
/** @typedef {import('./types.js').Guarantee} Guarantee */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').PanelProps} PanelProps */

const CONFIDENCES = [0.9, 0.95, 0.975, 0.99, 0.999];

/** Certify and download the model. @param {PanelProps} props */
export function AcceptPanel({ dialog, act }) {
  const step = stepOf(dialog, dialog.position);
  const root = `/api/dialogs/${encodeURIComponent(dialog.id)}`;
  const newest = [...dialog.accepted].reverse();
  const certified = newest.some((one) => one.step === dialog.position);
  const offer = dialog.read_only
    ? null
    : step && step.preference !== null
    ? html`<${Offer} key=${`${dialog.position} ${dialog.accepted.length}`} dialog=${dialog} step=${step} act=${act} />`
    : html`<${Empty} title="There is nothing to guarantee yet">
        The current step has no limits. Edit a cell of the matrix, or choose a point of the frontier.
      <//>`;
  return html`<div class="panel-stack">
    <div class="panel-head">
      <h2>Certify & export</h2>
      ${certified
        ? null
        : html`<p class="muted">
            The matrix counts errors on the tuning set, which the steps were fitted to, so it is not a guarantee.
            Certifying adjusts the decision on the certification
            set${dialog.parts?.certify ? `, ${plural(dialog.parts.certify, 'row')} that training and steering did not use,` : ''}
            ${' '}and states which limits hold for new rows. The certification set can be used once, or twice at half the error
            probability each.
          </p>`}
    </div>
    ${dialog.read_only && !newest.length ? html`<${Empty} title="No model is certified yet" />` : null}
    ${certified ? null : offer}
    ${newest.map((one) => html`<${Certificate} key=${one.number} dialog=${dialog} accepted=${one} root=${root} act=${act} />`)}
    ${certified ? offer : null}
    <section class="panel-part">
      <h3>Export this session</h3>
      <p class="muted">
        The report is one file with the matrices, the frontier, all steps and the certificates; it opens without the
        studio.
      </p>
      <div class="downloads">
        ${dialog.table
          ? html`<${DownloadLink} href=${`${root}/report.html`} name="report.html" note="HTML, one file">Report<//>`
          : null}
        ${dialog.table && !dialog.read_only
          ? html`<${DownloadLink} href=${`${root}/script.py`} name="script.py" note="reproduces this session">Python script<//>`
          : null}
        ${dialog.read_only
          ? null
          : html`<${DownloadLink} href=${`${root}/dialog.json`} name="dialog.json" note="all steps, JSON">Steps<//>`}
      </div>
    </section>
  </div>`;
}

/** The guarantee of the current step, and the button. @param {{dialog: Dialog, step: Step, act: Act}} props */
function Offer({ dialog, step, act }) {
  const { opened } = dialog;
  const [confidence, setConfidence] = useState(opened ?? dialog.confidence);
  const [reserve, setReserve] = useState(false);
  const [confirming, setConfirming] = useState(false);
  const [certifying, setCertifying] = useState(false);
  const known = dialog.accepted.find((one) => one.step === dialog.position);
  const noRows = !dialog.parts || dialog.parts.certify === 0;

  const working = act.busy && (certifying || dialog.job?.kind === 'accept');

  const open = !noRows && !known && !dialog.used_up;
  const { data, error, loading, reload } = useLoad(
    async (signal) =>
      open ? get(query(`/api/dialogs/${encodeURIComponent(dialog.id)}/guarantee`, { confidence, reserve }), signal) : null,
    [dialog.id, dialog.left, open, confidence, reserve],
  );
  const guarantee = /** @type {Guarantee | null} */ (error ? null : data);
  const reason = guarantee?.error ?? null;
  const expected = guarantee?.expected ?? null;
  const doubtful = expected && isImprobable(expected) ? expected : null;

  const certify = async () => {
    setConfirming(false);
    setCertifying(true);
    await act.run('accept', { confidence, reserve, anyway: doubtful !== null });
    setCertifying(false);
  };

  return html`<section class="offer" aria-label="Requested guarantee" aria-busy=${loading}>
    <div>
      <h3>${known ? 'Certified' : 'Requested'} in step ${step.number}</h3>
      <ul class="guarantees">
        ${(step.sentences.length ? step.sentences : [step.preference]).map((one) => html`<li>${one}</li>`)}
      </ul>
      ${/(^|[\s,(])\d+($|[\s,;])/.test(step.preference ?? '') && !/%/.test(step.preference ?? '')
        ? html`<p class="muted small">A count is guaranteed as a rate.</p>`
        : null}
    </div>
    ${step.met || !open
      ? null
      : html`<${Notice}
          kind="warn"
          title="This step does not meet its limits"
          action=${step.instead && !expected?.nearest
            ? html`<button type="button" class="button" disabled=${act.busy} onClick=${() => act.prefer([step.instead ?? ''], { keep: false })}>
                Use the closest limits instead
              </button>`
            : null}
        >
          On the tuning set it is ${step.shortfall < 1 ? 'less than a row' : plural(step.shortfall, 'row')} short.
        <//>`}
    ${known
      ? html`<${Notice} kind=${known.useless.length ? 'warn' : 'good'}>
          This step is already certified${known.useless.length ? ', but useless' : ''}: see certificate ${known.number}.
        <//>`
      : null}
    ${noRows
      ? html`<${Notice} kind="warn" title="There is no certification set">
          Begin a new dialog on the same table, with a certification set.
        <//>`
      : null}
    ${open
      ? html`<${Terms}
            dialog=${dialog}
            confidence=${confidence}
            fixed=${opened !== null}
            reserve=${reserve}
            onConfidence=${setConfidence}
            onReserve=${setReserve}
          />
          ${loading ? html`<${Spinner} label="Computing the certificate that can be expected" />` : null}
          ${expected && !loading ? html`<${Expected} expected=${expected} act=${act} />` : null}
          <div class="row">
            <button
              type="button"
              class=${doubtful ? 'button' : 'button-primary'}
              disabled=${act.busy || loading || error !== null || reason !== null}
              aria-describedby=${reason ? 'accept-reason' : undefined}
              onClick=${() => setConfirming(true)}
            >
              ${doubtful && !reason ? 'Certify anyway …' : 'Certify this model'}
            </button>
            ${working ? html`<${Spinner} label="Computing the guarantee" />` : null}
          </div>
          ${reason && !loading ? html`<${Unprovable} guarantee=${guarantee} fixed=${opened !== null} />` : null}
          ${error
            ? html`<${Notice}
                kind="bad"
                action=${html`<button type="button" class="button" onClick=${reload}>Try again</button>`}
              >
                ${sentence(error)}
              <//>`
            : null}`
      : null}
    ${noRows || (dialog.used_up && !known) ? null : html`<p class="muted small">${dialog.left}</p>`}
    ${dialog.used_up && !known ? html`<${Notice} kind="warn">${dialog.left}<//>` : null}
    ${confirming
      ? html`<${Confirm}
          dialog=${dialog}
          reserve=${reserve}
          confidence=${confidence}
          doubtful=${doubtful}
          onYes=${certify}
          onNo=${() => setConfirming(false)}
        />`
      : null}
  </section>`;
}

/** The smallest limit, in percent, that n rows can support. @param {number} n @param {number} delta */
const least = (n, delta) => Math.ceil(1e4 * (1 - delta ** (1 / n)) - 1e-9) / 100;

/**
 * The confidence, the reserve, and the limits that the certification set supports with them.
 * @param {{dialog: Dialog, confidence: number, fixed: boolean, reserve: boolean,
 *   onConfidence: (confidence: number) => void, onReserve: (reserve: boolean) => void}} props
 */
function Terms({ dialog, confidence, fixed, reserve, onConfidence, onReserve }) {
  const choices = [...new Set([...CONFIDENCES, confidence])].sort((a, b) => a - b);
  const delta = (1 - confidence) / (reserve ? 2 : 1);
  return html`<div class="terms">
    <div class="stack">
      <${Field}
        id="accept-confidence"
        label="Confidence"
        hint=${fixed
          ? 'All certificates on the same certification set have the same confidence.'
          : `A request ends in a false guarantee with a probability of at most ${confidenceText(1 - confidence)}.`}
      >
        <select
          id="accept-confidence"
          disabled=${fixed}
          value=${String(confidence)}
          onChange=${(/** @type {any} */ event) => onConfidence(Number(event.currentTarget.value))}
        >
          ${choices.map((one) => html`<option value=${String(one)}>${confidenceText(one)}</option>`)}
        </select>
      <//>
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            aria-describedby="accept-reserve-hint"
            checked=${reserve}
            onChange=${(/** @type {any} */ event) => onReserve(event.currentTarget.checked)}
          />
          Reserve half for another model
        </label>
        <p class="field-hint" id="accept-reserve-hint">
          The certification set can then be used once more. Each guarantee has half of the error probability
          (${confidenceText((1 - confidence) / 2)}), so it needs a larger margin.
        </p>
      </div>
    </div>
    <div>
      <table class="table table-tight">
        <caption>Limits that the certification set supports, one at a time</caption>
        <thead>
          <tr>
            <th scope="col">Errors on</th>
            <th scope="col" class="number">Rows</th>
            <th scope="col" class="number">Smallest limit</th>
          </tr>
        </thead>
        <tbody>
          ${dialog.support.map(
            (one) => html`<tr>
              <th scope="row" class="name">${labelText(one.label)}</th>
              <td class="number">${count(one.n)}</td>
              <td class="number">${fixed ? one.least : one.n ? least(one.n, delta).toFixed(2) : '–'}%</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </div>`;
}

/**
 * Why the guarantee cannot be proved, and what to do about it.
 * @param {{guarantee: Guarantee, fixed: boolean}} props
 */
function Unprovable({ guarantee, fixed }) {
  const needed = guarantee.fields?.needed; // the number of rows, null if no number is enough
  const others = fixed ? '' : ', choose a lower confidence';
  return html`<div id="accept-reason">
    <${Notice} kind="warn" title="This cannot be guaranteed">
      <p>${guarantee.error}</p>
      ${needed === null ? html`<p>Request a less strict limit.</p>` : null}
      ${needed
        ? html`<p>Request a less strict limit${others}, or begin a new dialog on a table with more rows.</p>`
        : null}
    <//>
  </div>`;
}

/**
 * Asks for confirmation before the certification set is used.
 * @param {{dialog: Dialog, reserve: boolean, confidence: number, doubtful: ExpectedCertificate | null, onYes: () => void,
 *   onNo: () => void}} props  `doubtful`: what is expected, if a useful model is probably not certified
 */
function Confirm({ dialog, reserve, confidence, doubtful, onYes, onNo }) {
  return html`<${Modal}
    title=${reserve ? 'Use half of the certification set?' : 'Use the certification set?'}
    onClose=${onNo}
    actions=${html`<button type="button" class="button" onClick=${onNo}>Not yet</button>
      <button type="button" class="button-primary" onClick=${onYes}>
        ${reserve ? 'Use half and certify' : 'Use it and certify'}
      </button>`}
  >
    ${doubtful ? html`<${Notice} kind="warn" title=${`${describeDoubt(doubtful)}.`}>The certification set is used all the same.<//>` : null}
    <p>
      The guarantee is computed on ${plural(dialog.parts?.certify ?? 0, 'row')} that training and steering did
      not use, with a confidence of ${confidenceText(confidence)}.
      ${reserve
        ? ` Half of the error probability of ${confidenceText(1 - confidence)} is reserved for one more model.`
        : ' Then the certification set is used up: no other model can be certified on it, since the best of several certified models would violate its guarantee more often than stated.'}
    </p>
    <p>This cannot be undone, even if the guarantee is refused.</p>
  <//>`;
}
