// A drawer with the rows that two steps predict differently, to be filtered, sorted and downloaded.
// @ts-check

import { query } from './api.js';
import { DownloadLink, Empty, Icon, count, html, plural, useEffect, useRef, useState } from './kit.js';
import { PageOfRows, useRows } from './rows.js';

/** @typedef {import('./types.js').ChangedRows} Changed */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').StepPair} StepPair */

/** @param {Step} step */
const stepText = ({ number, preference, strategy }) => `${number}: ${preference ?? strategy}`;

/**
 * @param {{id: string, label: string, steps: Step[], value: number, choose: (step: number) => void}} props
 */
const StepSelect = ({ id, label, steps, value, choose }) =>
  html`<div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${String(value)} onChange=${(/** @type {any} */ event) => choose(Number(event.target.value))}>
      ${steps.map((step) => html`<option value=${String(step.number)}>${stepText(step)}</option>`)}
    </select>
  </div>`;

/** @param {{data: Changed | null, newly: string | null, choose: (newly: string | null) => void}} props */
function Filter({ data, newly, choose }) {
  const kinds = /** @type {[string | null, string, number | undefined][]} */ ([
    [null, 'All', data?.n_changed],
    ['right', 'Newly right', data?.n_newly.right],
    ['wrong', 'Newly wrong', data?.n_newly.wrong],
    ['rejected', 'Newly rejected', data?.n_newly.rejected],
  ]);
  return html`<div class="switch drawer-filter" role="group" aria-label="Which rows">
    ${kinds.map(
      ([kind, text, n]) =>
        html`<button key=${text} type="button" aria-pressed=${newly === kind} onClick=${() => choose(kind)}>
          ${text}${n === undefined ? null : html` <span class="number">${count(n)}</span>`}
        </button>`,
    )}
  </div>`;
}

/**
 * The drawer at the foot of the page. `pair`: the two steps, a new object each time the user opens the drawer.
 * @param {{dialog: Dialog, pair: StepPair, close: () => void}} props
 */
export function ChangedRows({ dialog, pair, close }) {
  const [steps, setSteps] = useState(pair);
  const [newly, setNewly] = useState(/** @type {string | null} */ (null));
  const head = useRef(/** @type {HTMLElement | null} */ (null));
  const opener = useRef(/** @type {Element | null} */ (null));
  useEffect(() => {
    opener.current = document.activeElement;
    setSteps(pair);
    setNewly(null);
    head.current?.focus();
  }, [pair]);
  useEffect(() => () => opener.current instanceof HTMLElement && opener.current.focus(), []);
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const keys = (event) => {
      // Elsewhere in the page, Escape ends an edit or closes a box.
      const other = /** @type {Element} */ (event.target).closest('dialog, [role=grid], input, textarea');
      if (event.key === 'Escape' && !other) close();
    };
    window.addEventListener('keydown', keys);
    return () => window.removeEventListener('keydown', keys);
  }, [close]);
  const root = `/api/dialogs/${encodeURIComponent(dialog.id)}/compare`;
  const page = useRows(`${root}/rows`, { ...steps, newly }, []);
  const data = /** @type {Changed | null} */ (page.data);
  return html`<section class="drawer" aria-labelledby="drawer-head" aria-busy=${page.loading}>
    <div class="drawer-top">
      <h2 id="drawer-head" class="grow" tabindex="-1" ref=${head}>
        Rows that changed from step ${steps.first} to step ${steps.second}
      </h2>
      <button type="button" class="button-icon" aria-label="Close the changed rows" onClick=${close}>
        <${Icon} name="close" />
      </button>
    </div>
    <div class="drawer-body">
      <div class="rows-choice">
        <${StepSelect}
          id="changed-first"
          label="From step"
          steps=${dialog.steps}
          value=${steps.first}
          choose=${(/** @type {number} */ first) => setSteps({ ...steps, first })}
        />
        <${StepSelect}
          id="changed-second"
          label="To step"
          steps=${dialog.steps}
          value=${steps.second}
          choose=${(/** @type {number} */ second) => setSteps({ ...steps, second })}
        />
        <${Filter} data=${data} newly=${newly} choose=${setNewly} />
        <${DownloadLink} href=${query(`${root}/rows.csv`, { ...steps, newly })} name="changed_rows.csv">
          These rows as CSV
        <//>
      </div>
      <p class="muted small">
        ${data ? `${plural(data.n_changed, 'row')} of ${count(dialog.n)} in the tuning set changed. ` : ''}
        The certainty is the fraction of rows with a smaller margin in the same step.
      </p>
      <${PageOfRows} page=${page} label="Changed rows" changed>
        <${Empty} title="No such rows">
          ${newly === null ? 'Both steps predict the same for all rows.' : 'Choose “All” or two other steps.'}
        <//>
      <//>
    </div>
  </section>`;
}
