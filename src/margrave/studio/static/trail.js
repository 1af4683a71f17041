// The trail: the tree of all steps, to go to a step and to compare two, with undo and redo.
// @ts-check

import { get, query } from './api.js';
import {
  Icon,
  Notice,
  Spinner,
  Tag,
  count,
  errorNames,
  html,
  plural,
  useEffect,
  useLoad,
  useMemo,
  useRef,
  useState,
} from './kit.js';
import { totalsOf } from './matrix_counts.js';
import { Changes } from './matrix_reply.js';
import { lanes } from './trail_lanes.js';

/** @typedef {import('./trail_lanes.js').Place} Place */
/** @typedef {import('./types.js').Accepted} Accepted */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Comparison} Comparison */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Step} Step */

const ROW = 38;
const LANE = 16;
const MOST_LANES = 6;

/** @param {number} lane */
const x = (lane) => Math.min(lane, MOST_LANES - 1) * LANE + LANE / 2;

/** @param {Place["lines"][number]} line */
function path({ from, to, part }) {
  const [top, middle, bottom] = [0, ROW / 2, ROW];
  if (part === 'upper') return `M${x(to)} ${top}V${middle}`;
  if (part === 'all') return `M${x(to)} ${top}V${bottom}`;
  return `M${x(from)} ${middle}C${x(from)} ${bottom - 5} ${x(to)} ${middle + 5} ${x(to)} ${bottom}`;
}

/** @param {{place: Place, width: number, step: Step, here: boolean}} props */
function Graph({ place, width, step, here }) {
  const wide = Math.min(width, MOST_LANES) * LANE;
  return html`<svg class="trail-graph" width=${wide} height=${ROW} viewBox=${`0 0 ${wide} ${ROW}`} aria-hidden="true">
    ${place.lines.map((line) => html`<path d=${path(line)} />`)}
    <circle
      cx=${x(place.lane)}
      cy=${ROW / 2}
      r=${here ? 5.5 : 4}
      class=${here ? 'trail-here' : step.met ? 'trail-met' : 'trail-not'}
    />
  </svg>`;
}

/** The errors of a step, and its rejected rows if there are any. @param {Step} step @returns {[string, number][]} */
function countsOf({ fp, fn, after }) {
  const { errors, rejected } = totalsOf(after);
  return [
    .../** @type {[string, number][]} */ (fp === null ? [['errors', errors]] : [['fp', fp], ['fn', fn ?? 0]]),
    .../** @type {[string, number][]} */ (rejected ? [['rejected', rejected]] : []),
  ];
}

/** What a word for errors counts: "false positives: ham predicted spam". @param {Step} step @param {string} name */
function countTitle({ after: { classes, positive } }, name) {
  if (positive === null || (name !== 'fp' && name !== 'fn')) return undefined;
  const negative = classes.length === 2 ? classes[classes[0] === positive ? 1 : 0] : null;
  return `${name === 'fp' ? 'false positives' : 'false negatives'}: ${errorNames({ positive, negative })[name]}`;
}

/** @param {Step} step */
function stepLabel(step) {
  const counts = countsOf(step).map(([name, n]) => `, ${name} ${count(n)}`).join('');
  if (step.preference === null && step.strategy === 'start') return `Step 0, the start${counts}`;
  const from = step.parent === step.number - 1 ? '' : `, from step ${step.parent}`;
  return `Step ${step.number}${from}: ${step.preference ?? step.strategy}, ${step.met ? 'met' : 'not met'}${counts}, ${step.strategy}`;
}

/**
 * @param {{step: Step, place: Place, width: number, here: boolean, off: boolean, marked: boolean, accepted: Accepted | undefined,
 *   go: () => void, mark: () => void}} props  `off`: not on the path to the current step
 */
function Line({ step, place, width, here, off, marked, accepted, go, mark }) {
  // Rendered again only after a change, so that a long trail stays fast.
  const deps = [stepLabel(step), JSON.stringify(place), width, here, off, marked, accepted?.number];
  return useMemo(() => renderLine({ step, place, width, here, off, marked, accepted, go, mark }), deps);
}

/** @param {Parameters<typeof Line>[0]} props */
function renderLine({ step, place, width, here, off, marked, accepted, go, mark }) {
  const start = step.strategy === 'start' && step.preference === null;
  const useless = accepted && accepted.useless.length > 0;
  return html`<li class=${`trail-line ${here ? 'trail-line-here' : ''} ${off ? 'trail-line-off' : ''}`}>
    <button
      type="button"
      class="trail-step"
      data-step=${step.number}
      aria-current=${here ? 'step' : undefined}
      onClick=${() => !here && go()}
    >
      <span class="hidden">${stepLabel(step)}${here ? ', current step' : ''}</span>
      <span class="trail-face" aria-hidden="true">
      <${Graph} place=${place} width=${width} step=${step} here=${here} />
      <span class="trail-number muted">${step.number}</span>
      ${
        start
          ? html`<span class="trail-preference">start</span>`
          : html`<code class="trail-preference" title=${step.preference ?? step.strategy}>${step.preference ?? step.strategy}</code>`
      }
      ${accepted ? html`<${Tag} kind=${useless ? 'warn' : 'good'}>certified${useless ? ', but useless' : ''}<//>` : null}
      ${start || step.met ? null : html`<${Tag} kind="warn">not met<//>`}
      <span class="trail-counts">
        ${countsOf(step).map(([name, n]) => html`<span title=${countTitle(step, name)}><span class="muted">${name}</span> ${count(n)}</span>`)}
      </span>
      <span class="trail-strategy muted">${start ? '' : step.strategy}</span>
      </span>
    </button>
    <button
      type="button"
      class="button-icon trail-mark"
      aria-pressed=${marked}
      aria-label=${`Compare step ${step.number}`}
      title="Mark two steps to compare them"
      onClick=${mark}
    >
      <${Icon} name="compare" />
    </button>
  </li>`;
}

/** @param {Comparison} comparison @param {number} n @param {number} first @param {number} second */
function comparedText({ n_changed, n_only_first, n_only_second }, n, first, second) {
  if (n_changed === 0) return `All ${plural(n, 'row')} have the same predictions.`;
  const differ = `${count(n_changed)} of ${plural(n, 'row')} have different predictions`;
  const right = `${count(n_only_first)} right in step ${first} only, ${count(n_only_second)} right in step ${second} only`;
  return `${differ}: ${right}.`;
}

/** Two steps side by side. @param {{dialog: Dialog, first: number, second: number, act: Act, close: () => void}} props */
function Compared({ dialog, first, second, act, close }) {
  const { data, error } = useLoad(
    async (signal) => {
      const address = query(`/api/dialogs/${encodeURIComponent(dialog.id)}/compare`, { first, second });
      return /** @type {Comparison} */ (await get(address, signal));
    },
    [dialog.id, first, second],
  );
  return html`<section class="compared" aria-label="Comparison" aria-live="polite">
    <div class="row">
      <h3 class="grow">Step ${first} → step ${second}</h3>
      <button type="button" class="button-icon" aria-label="Close the comparison" onClick=${close}>
        <${Icon} name="close" />
      </button>
    </div>
    ${error ? html`<${Notice} kind="bad">${error.message}<//>` : null}
    ${!data && !error ? html`<${Spinner} label="Comparing" />` : null}
    ${
      data
        ? html`<p class="small">${comparedText(data, dialog.n, first, second)}</p>
          ${data.changes.length ? html`<${Changes} changes=${data.changes} />` : null}
          ${
            data.n_changed
              ? html`<div>
                <button type="button" class="button button-small" onClick=${() => act.showChanges({ first, second })}>
                  Show the ${plural(data.n_changed, 'row')} that changed
                </button>
              </div>`
              : null
          }`
        : null
    }
  </section>`;
}

/** The steps on the path to the current step. @param {Dialog} dialog */
function pathTo(dialog) {
  const parents = new Map(dialog.steps.map(({ number, parent }) => [number, parent]));
  const path = new Set();
  let at = /** @type {number | null | undefined} */ (dialog.position);
  while (at != null && !path.has(at)) {
    path.add(at);
    at = parents.get(at);
  }
  return path;
}

/** Undo or redo. @param {{name: string, title: string, keys: string, can: boolean, go: () => void}} props */
const Walk = ({ name, title, keys, can, go }) =>
  html`<button
    type="button"
    class="button-icon"
    aria-label=${title}
    title=${`${title} (${keys})`}
    aria-disabled=${!can}
    onClick=${() => can && go()}
  >
    <${Icon} name=${name} />
  </button>`;

/** The trail of a dialog. @param {{dialog: Dialog, act: Act}} props */
export function Trail({ dialog, act }) {
  const [marks, setMarks] = useState(/** @type {number[]} */ ([]));
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // Scrolls the list to the current step, but not the page.
    const box = list.current;
    const here = /** @type {HTMLElement | null | undefined} */ (box?.querySelector('.trail-line-here'));
    if (
      box &&
      here &&
      (here.offsetTop < box.scrollTop || here.offsetTop + ROW > box.scrollTop + box.clientHeight)
    ) {
      box.scrollTop = here.offsetTop - box.clientHeight / 2;
    }
  }, [dialog.position, dialog.steps.length]);
  /** @param {number} number */
  const mark = (number) =>
    setMarks((now) =>
      now.includes(number) ? now.filter((other) => other !== number) : [...now, number].slice(-2),
    );
  /** @param {KeyboardEvent} event */
  const keys = (event) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const line = /** @type {HTMLElement} */ (event.target).closest('.trail-line');
    const next = event.key === 'ArrowDown' ? line?.nextElementSibling : line?.previousElementSibling;
    event.preventDefault();
    /** @type {HTMLElement | null | undefined} */ (next?.querySelector('.trail-step'))?.focus();
  };
  const acts = useRef(act);
  acts.current = act;
  const lines = useMemo(() => {
    const { places, width } = lanes(dialog.steps);
    const path = pathTo(dialog);
    const accepted = new Map(dialog.accepted.map((one) => [one.step, one]));
    return dialog.steps.map(
      (step, row) =>
        html`<${Line}
          key=${step.number}
          step=${step}
          place=${places[row]}
          width=${width}
          here=${step.number === dialog.position}
          off=${!path.has(step.number)}
          marked=${marks.includes(step.number)}
          accepted=${accepted.get(step.number)}
          go=${() => acts.current.busy || acts.current.goto(step.number)}
          mark=${() => mark(step.number)}
        />`,
    );
  }, [dialog, marks]);
  const [first, second] = [...marks].sort((a, b) => a - b);
  return html`<section class="card trail" aria-labelledby="trail-head">
    <div class="row">
      <h2 id="trail-head" class="grow">
        Trail${' '}<span class="muted small">${plural(dialog.steps.length - 1, 'step')}</span>
      </h2>
      <${Walk} name="undo" title="Undo" keys="Ctrl-Z" can=${dialog.can_undo && !act.busy} go=${act.undo} />
      <${Walk} name="redo" title="Redo" keys="Ctrl-Shift-Z" can=${dialog.can_redo && !act.busy} go=${act.redo} />
    </div>
    <ol class="trail-list" ref=${list} aria-busy=${act.busy} onKeyDown=${keys}>${lines}</ol>
    ${
      marks.length === 1
        ? html`<p class="muted small">Mark one more step to compare it with step ${marks[0]}.</p>`
        : null
    }
    ${
      marks.length === 2
        ? html`<${Compared}
          key=${`${first} ${second}`}
          dialog=${dialog}
          first=${first}
          second=${second}
          act=${act}
          close=${() => setMarks([])}
        />`
        : null
    }
  </section>`;
}
