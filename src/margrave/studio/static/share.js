// Sharing: the button that makes a read-only link, and the matrices and steps as a reader of the link sees them.
// @ts-check

import { del, post } from './api.js';
import { count, DownloadLink, html, Modal, Notice, plural, sentence, SmallMatrix, useEffect, useRef, useState } from './kit.js';
import { rejectedOf, totalsOf } from './matrix_counts.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Step} Step */

/** The button, and the box with the link. @param {{dialog: Dialog, refresh: () => Promise<void>}} props */
export function Share({ dialog, refresh }) {
  const [open, setOpen] = useState(false);
  return html`<button type="button" class="button" onClick=${() => setOpen(true)}>Share</button>
    ${open ? html`<${Box} dialog=${dialog} refresh=${refresh} close=${() => setOpen(false)} />` : null}`;
}

const LOCAL = /^(127\.|localhost$|\[::1\]$)/; // the names of this machine

/** Move the focus to an element that appears. @param {HTMLElement | null} element */
const focused = (element) => element?.focus();

/** @param {{dialog: Dialog, refresh: () => Promise<void>, close: () => void}} props */
function Box({ dialog, refresh, close }) {
  const path = `/api/dialogs/${encodeURIComponent(dialog.id)}`;
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const [stopping, setStopping] = useState(false);
  /** @param {() => Promise<any>} send */
  const change = async (send) => {
    if (busy) return;
    setBusy(true);
    try {
      await send();
      setProblem('');
      await refresh();
    } catch (error) {
      setProblem(sentence(error));
    }
    setBusy(false);
  };
  const stop = async () => {
    await change(() => del(`${path}/share`));
    setStopping(false);
  };
  return html`<${Modal}
    title="Share this dialog"
    onClose=${close}
    actions=${
      !dialog.link
        ? html`<button key="create" type="button" class="button-primary" ref=${focused} onClick=${() => change(() => post(`${path}/share`))}>
            Create a link
          </button>`
        : stopping
          ? html`<span>The link stops working for everybody.</span>
            <button key="keep" type="button" class="button" ref=${focused} onClick=${() => setStopping(false)}>Keep it</button>
            <button key="stop" type="button" class="button-danger" onClick=${stop}>Stop sharing</button>`
          : html`<button key="ask" type="button" class="button" ref=${focused} onClick=${() => setStopping(true)}>Stop sharing</button>`
    }
  >
    <p>
      Whoever has the link sees the matrices, the steps, the frontier, the members and the certificates of this dialog,
      also those of later steps. They cannot change anything, and they do not see the rows of the table.
    </p>
    ${
      LOCAL.test(new URL(dialog.link ?? location.href).hostname)
        ? html`<p>The studio listens on this machine only, so a link works on this machine only.</p>`
        : null
    }
    ${dialog.link ? html`<${Link} link=${dialog.link} />` : null}
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    ${
      dialog.table
        ? html`<p>Or send a file, which opens without the studio:</p>
          <${DownloadLink} href=${`${path}/report.html`} name="report.html" note="HTML, one file">Report<//>`
        : null
    }
  <//>`;
}

/** @param {{link: string}} props */
function Link({ link }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [copied, setCopied] = useState('');
  useEffect(() => field.current?.focus(), []); // a link that was just made is copied next
  const copy = async () => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(link);
      setCopied('Copied.');
    } catch {
      setCopied('Copy it with Ctrl-C.'); // without TLS, browsers allow no more
    }
  };
  return html`<div class="field">
    <label for="share-link">Read-only link</label>
    <div class="row share-link">
      <input id="share-link" type="text" class="mono" readonly value=${link} ref=${field} />
      <button type="button" class="button" onClick=${copy}>Copy</button>
    </div>
    <p class="field-hint" role="status">${copied}</p>
  </div>`;
}

/** The matrices of the start and of the current step, and all steps. @param {{dialog: Dialog, step: Step}} props */
export function ReadOnly({ dialog, step }) {
  const start = dialog.steps[0];
  return html`<div class="dialog-left">
    <section class="card stack" aria-labelledby="read-matrix">
      <h2 id="read-matrix">Confusion matrix</h2>
      <h3>${step === start ? 'Start' : `Step ${step.number}`}</h3>
      <${SmallMatrix} matrix=${step.after} caption=${`Confusion matrix of step ${step.number}`} />
      <p class="muted small">${plural(dialog.n, 'row')} in the tuning set, ${plural(totalsOf(step.after).errors, 'error')}.</p>
      ${
        step === start
          ? null
          : html`<h3>Start</h3>
            <${SmallMatrix} matrix=${start.after} caption="Confusion matrix of the start" />
            <p class="muted small">${plural(totalsOf(start.after).errors, 'error')}.</p>`
      }
    </section>
    <section class="card stack" aria-labelledby="read-steps">
      <h2 id="read-steps">Steps</h2>
      <div class="scroll-x" tabindex="0" role="group" aria-labelledby="read-steps">
        <table class="table table-tight">
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Limits</th>
              ${start.fp === null ? null : html`<th scope="col" class="number">fp</th><th scope="col" class="number">fn</th>`}
              <th scope="col" class="number">Errors</th>
              <th scope="col" class="number">Rejected</th>
            </tr>
          </thead>
          <tbody>
            ${dialog.steps.map((one) => html`<${Line} key=${one.number} step=${one} here=${one === step} />`)}
          </tbody>
        </table>
      </div>
    </section>
  </div>`;
}

/** @param {{step: Step, here: boolean}} props */
function Line({ step, here }) {
  const limits = step.preference ?? (step.number === 0 ? 'start' : step.strategy);
  return html`<tr aria-current=${here ? 'step' : undefined}>
    <th scope="row">${step.number}${here ? ' (current)' : ''}</th>
    <td><code>${limits}</code>${step.met || step.number === 0 ? '' : ', not met'}</td>
    ${step.fp === null ? null : html`<td class="number">${count(step.fp)}</td><td class="number">${count(step.fn ?? 0)}</td>`}
    <td class="number">${count(totalsOf(step.after).errors)}</td>
    <td class="number">${count(rejectedOf(step.after))}</td>
  </tr>`;
}
