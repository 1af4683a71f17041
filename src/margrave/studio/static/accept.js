// The acceptance panel: what would be promised, on what, the certificates, and what is taken away.
// @ts-check

import { Certificate, sureText } from './accept_certificate.js';
import { stepOf } from './dialog_state.js';
import { count, DownloadLink, Empty, Field, html, Modal, Notice, plural, Spinner, useState } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').PanelProps} PanelProps */

const CONFIDENCES = [0.9, 0.95, 0.975, 0.99, 0.999];

/** Taking the model away. @param {PanelProps} props */
export function AcceptPanel({ dialog, act }) {
  const step = stepOf(dialog, dialog.position);
  const root = `/api/dialogs/${encodeURIComponent(dialog.id)}`;
  const newest = [...dialog.accepted].reverse();
  return html`<div class="panel-stack">
    <div class="panel-head">
      <h2>Accept</h2>
      <p class="muted">
        A matrix on tuning samples is no guarantee. The last step sets the decision anew, on samples that
        no step has seen, and says what holds for new ones.
      </p>
    </div>
    ${step && step.asked !== null
      ? html`<${Offer} key=${`${dialog.position} ${dialog.accepted.length}`} dialog=${dialog} step=${step} act=${act} />`
      : html`<${Empty} title="Ask for something first">
          Nothing was asked of the matrix where the dialog stands, so there is nothing to guarantee yet. Edit a cell of
          it, or choose a point of the frontier.
        <//>`}
    ${newest.map((one) => html`<${Certificate} key=${one.number} accepted=${one} root=${root} act=${act} />`)}
    <section class="panel-part">
      <h3>The dialog itself</h3>
      <p class="muted">How this was found, to keep, to read, or to do again.</p>
      <div class="downloads">
        ${dialog.table
          ? html`<${DownloadLink} href=${`${root}/report.html`} name="report.html" note="a page to read">Report<//>
              <${DownloadLink} href=${`${root}/script.py`} name="script.py" note="does it again">Python script<//>`
          : null}
        <${DownloadLink} href=${`${root}/dialog.json`} name="dialog.json" note="all steps">Dialog<//>
      </div>
    </section>
  </div>`;
}

/** What the current step would guarantee, and the button. @param {{dialog: Dialog, step: Step, act: Act}} props */
function Offer({ dialog, step, act }) {
  const { opened } = dialog;
  const [confidence, setConfidence] = useState(opened ?? dialog.confidence);
  const [reserve, setReserve] = useState(false);
  const [sure, setSure] = useState(false);
  const [asking, setAsking] = useState(false);
  const [refused, setRefused] = useState(/** @type {string | null} */ (null));
  const known = dialog.accepted.find((one) => one.step === dialog.position);
  const nothing = !dialog.parts || dialog.parts.certify === 0;

  const working = act.busy && (asking || dialog.job?.kind === 'accept');

  const accept = async () => {
    setSure(false);
    setRefused(null);
    setAsking(true);
    const job = await act.run('accept', { confidence, reserve });
    setAsking(false);
    if (job?.state === 'failed') setRefused(job.error ?? 'The guarantee was refused.');
  };

  return html`<section class="offer" aria-label="What would be promised">
    <div class="offer-guarantee">
      <h3>Step ${step.number} would guarantee</h3>
      <ul class="guarantees">
        ${(step.sentences.length ? step.sentences : [step.asked]).map((one) => html`<li>${one}</li>`)}
      </ul>
      ${/(^|[\s,(])\d+($|[\s,;])/.test(step.asked ?? '') && !/%/.test(step.asked ?? '')
        ? html`<p class="muted small">A count is promised as its rate.</p>`
        : null}
    </div>
    ${step.met
      ? null
      : html`<${Notice}
          kind="warn"
          title="This step does not keep to what was asked"
          action=${step.instead
            ? html`<button type="button" class="button" disabled=${act.busy} onClick=${() => act.prefer([step.instead ?? ''], { keep: false })}>
                Take the nearest instead
              </button>`
            : null}
        >
          On the tuning samples ${plural(step.shortfall, 'sample')} too many are in the wrong place, so the
          guarantee will most likely be refused.
        <//>`}
    ${step.sentences.length > 1 && !known && !dialog.used_up
      ? html`<${Notice} kind="warn">
          Several limits together are much harder to guarantee than one: new samples vary, and room that one limit
          needs is taken from the other. Leave some room in each, or ask for one of them. A refusal that has looked
          at the samples spends them too.
        <//>`
      : null}
    ${known
      ? html`<${Notice} kind="good">This step was accepted already: certificate ${known.number} below.<//>`
      : null}
    ${nothing
      ? html`<${Notice} kind="warn" title="Nothing was set aside for a certificate">
          Start again on the same table and set a part of it aside.
        <//>`
      : null}
    ${nothing || known || dialog.used_up
      ? null
      : html`<${Terms}
            dialog=${dialog}
            confidence=${confidence}
            fixed=${opened !== null}
            reserve=${reserve}
            onConfidence=${setConfidence}
            onReserve=${setReserve}
          />
          <div class="row">
            <button type="button" class="button-primary" disabled=${act.busy} onClick=${() => setSure(true)}>
              Accept this model
            </button>
            ${working ? html`<${Spinner} label="Setting the guarantee" />` : null}
          </div>`}
    ${nothing || (dialog.used_up && !known) ? null : html`<p class="muted small">${dialog.left}</p>`}
    ${dialog.used_up && !known ? html`<${Notice} kind="warn">${dialog.left}<//>` : null}
    ${refused ? html`<${Refused} reason=${refused} usedUp=${dialog.used_up} opened=${opened !== null} />` : null}
    ${sure
      ? html`<${Sure} dialog=${dialog} reserve=${reserve} confidence=${confidence} onYes=${accept} onNo=${() => setSure(false)} />`
      : null}
  </section>`;
}

/** The smallest share, in percent, that n samples can support. @param {number} n @param {number} delta */
const least = (n, delta) => Math.ceil(1e4 * (1 - delta ** (1 / n)) - 1e-9) / 100;

/**
 * Confidence, reserve, and what the certify samples support with them.
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
          ? 'All certificates on the same samples share it.'
          : `At most ${sureText(1 - confidence)} of those who do this get a guarantee that is broken.`}
      >
        <select
          id="accept-confidence"
          disabled=${fixed}
          value=${String(confidence)}
          onChange=${(/** @type {any} */ event) => onConfidence(Number(event.currentTarget.value))}
        >
          ${choices.map((one) => html`<option value=${String(one)}>${sureText(one)}</option>`)}
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
          The samples can be looked at once more later. The price: this guarantee has to be stricter.
        </p>
      </div>
    </div>
    <div>
      <table class="table table-tight">
        <caption>What the certify samples support, one limit at a time</caption>
        <thead>
          <tr>
            <th scope="col">Mistakes with</th>
            <th scope="col" class="number">Samples</th>
            <th scope="col" class="number">Limits from</th>
          </tr>
        </thead>
        <tbody>
          ${dialog.support.map(
            (one) => html`<tr>
              <th scope="row" class="name">${one.label}</th>
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
 * Why there is no guarantee, and what would help: once the samples are spent, only rows that nobody has looked at.
 * @param {{reason: string, usedUp: boolean, opened: boolean}} props
 */
const Refused = ({ reason, usedUp, opened }) =>
  html`<${Notice} kind="warn" title="The guarantee was refused">
    <p>${reason}</p>
    ${usedUp
      ? html`<p>What would help: a new dialog on a table with fresh rows.</p>`
      : html`<p>What would help:</p>
          <ul class="help">
            <li>ask for a limit that is less strict, and accept that step;</li>
            ${opened ? null : html`<li>a lower confidence;</li>`}
            <li>a table with more rows.</li>
          </ul>`}
  <//>`;

/**
 * The question before samples are spent.
 * @param {{dialog: Dialog, reserve: boolean, confidence: number, onYes: () => void, onNo: () => void}} props
 */
function Sure({ dialog, reserve, confidence, onYes, onNo }) {
  return html`<${Modal}
    title=${reserve ? 'Spend half of what is left?' : 'Spend the certify samples?'}
    onClose=${onNo}
    actions=${html`<button type="button" class="button" onClick=${onNo}>Not yet</button>
      <button type="button" class="button-primary" onClick=${onYes}>
        ${reserve ? 'Spend half and accept' : 'Spend them and accept'}
      </button>`}
  >
    <p>
      The guarantee is set on ${plural(dialog.parts?.certify ?? 0, 'sample')} that no step has seen, with a
      confidence of ${sureText(confidence)}.
      ${reserve
        ? ' Half of what may be spent on them stays for one more model.'
        : ' Afterwards no other model can be promised on them: whoever accepts ten and takes the best breaks guarantees.'}
    </p>
    <p>This cannot be undone, also if the guarantee is refused after looking at them.</p>
  <//>`;
}
