// The card with the large matrix: the grid, the requested limits, and the reply.
// @ts-check

import { ApiError, link, post } from './api.js';
import {
  announce,
  predictedText,
  count,
  html,
  nameClass,
  plural,
  quoted,
  rowTotals,
  sentence,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from './kit.js';
import { AskBox } from './matrix_ask.js';
import { limitsText } from './dialog_state.js';
import { apiEdits, converted } from './matrix_edits.js';
import { MatrixGrid } from './matrix_grid.js';
import { RejectSlider } from './matrix_reject.js';
import { ReplyBox, liveText } from './matrix_reply.js';
import { errorsOf, totalsOf } from './matrix_counts.js';
import { markOf, previewOf } from './preview.js';
import { Summary, useSince } from './summary.js';

/** @typedef {import('./matrix_edits.js').Edits} Edits */
/** @typedef {import('./matrix_edits.js').Mode} Mode */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Frontier} Frontier */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Preview} Preview */
/** @typedef {import('./types.js').Reading} Reading */
/** @typedef {import('./types.js').Reply} Reply */
/** @typedef {import('./types.js').Step} Step */

const READ_MS = 180;
const MODE_KEY = 'margrave-matrix-mode';
const COST = 'lowest cost';

/** The cost of a false negative in a goal such as "lowest cost of fp + 20 fn"; null if it is no such goal. @param {string} goal */
function ratioOf(goal) {
  const found = /^(?:lowest cost of|fewest) fp(?:\([^+]*\))? \+ (?:([\d.]+) )?fn(?:\([^+]*\))?$/.exec(goal);
  return found && Number(found[1] ?? 1);
}

/** @param {Dialog} dialog @param {Label} focus @param {number} ratio */
function costGoal({ classes }, focus, ratio) {
  const label = classes.length > 2 ? `(${quoted(focus)})` : '';
  return `${COST} of fp${label} + ${ratio} fn${label}`;
}

/**
 * The preference that the server reads from the edits, shortly after the last change. `now` reads at once, or
 * returns the running request.
 * @param {Dialog} dialog @param {Matrix} matrix @param {Edits} edits @param {string[]} wants @param {string | null} then
 * @param {boolean} keep
 */
function useReading(dialog, matrix, edits, wants, then, keep) {
  const [answered, setAnswered] = useState(/** @type {{key: string, found: Reading | null} | null} */ (null));
  const request = useRef(
    /** @type {{key: string, control: AbortController, result: Promise<Reading | null>} | null} */ (null),
  );
  const any = Object.keys(edits).length > 0 || wants.length > 0;
  const body = JSON.stringify({ edits: apiEdits(edits, matrix), wants, then, keep });
  const key = `${dialog.id} ${dialog.position} ${body}`;
  const now = useCallback(() => {
    if (request.current?.key === key) return request.current.result;
    request.current?.control.abort();
    const control = new AbortController();
    const result = fetchReading(dialog.id, body, control.signal).then((found) => {
      if (control.signal.aborted) return null;
      setAnswered({ key, found });
      return found;
    });
    request.current = { key, control, result };
    return result;
  }, [key]);
  useEffect(() => {
    if (request.current?.key === key) return undefined;
    request.current?.control.abort();
    request.current = null;
    if (!any) {
      setAnswered(null);
      return undefined;
    }
    const timer = setTimeout(now, READ_MS);
    return () => clearTimeout(timer);
  }, [now, any]);
  useEffect(
    () =>
      link.watch((state) => {
        if (state !== 'up' || !any) return;
        request.current = null;
        now();
      }),
    [now, any],
  );
  return { reading: (any && answered?.found) || null, reads: any && answered?.key !== key, any, now };
}

/** @param {string} id @param {string} body @param {AbortSignal} signal @returns {Promise<Reading | null>} */
async function fetchReading(id, body, signal) {
  try {
    return await post(`/api/dialogs/${encodeURIComponent(id)}/read`, JSON.parse(body), signal);
  } catch (error) {
    if (!(error instanceof ApiError)) return null;
    const nothing = { preference: null, sentences: [], already: false, goal: null, goals: [], replaced: [], fields: null };
    return { ...nothing, after: null, met: null, error: sentence(error), code: error.code };
  }
}

/**
 * The selected cell in words, with a button for its rows.
 * @param {{matrix: Matrix, row: number, column: number, act: Act}} props
 */
function ChosenCell({ matrix, row, column, act }) {
  const predicted = column === matrix.classes.length ? null : matrix.classes[column];
  const n = matrix.counts[row][column];
  const label = matrix.classes[row];
  const show = () =>
    act.showRows(
      predicted === null ? { true: label, rejected: true } : { true: label, predicted, rejected: false },
    );
  return html`<div class="matrix-chosen small">
    <span class="muted grow">
      ${nameClass(label)} ${predictedText(predicted)}: <strong>${count(n)}</strong> of ${count(rowTotals(matrix)[row])}
    </span>
    <button type="button" class="button-quiet button-small" disabled=${n === 0} onClick=${show}>
      ${n === 0 ? 'No rows' : `Show ${n === 1 ? 'this row' : `these ${plural(n, 'row')}`}`}
    </button>
  </div>`;
}

/** @param {{mode: Mode, choose: (mode: Mode) => void}} props */
function ModeSwitch({ mode, choose }) {
  const modes = /** @type {const} */ ([
    ['counts', 'Counts'],
    ['percent', 'Percent of the row'],
  ]);
  return html`<div class="switch" role="group" aria-label="Numbers as">
    ${modes.map(
      ([name, text]) =>
        html`<button key=${name} type="button" aria-pressed=${mode === name} onClick=${() => choose(name)}>
          ${text}
        </button>`,
    )}
  </div>`;
}

/** A preview in words, for screen readers. @param {Matrix} after */
function previewText(after) {
  const { errors, rejected } = totalsOf(after);
  return `Preview: ${plural(errors, 'error')} in total, ${count(rejected)} rejected.`;
}

/** @param {Reply} shown */
const placeText = ({ number }) =>
  number === null ? 'searching' : number === 0 ? 'start' : `step ${number}`;

/**
 * @param {{dialog: Dialog, step: Step, reply: Reply | null, job: Job | null, act: Act, stop: () => void,
 *   frontier: Frontier | null, focus: Label, setPreview: (preview: Preview | null) => void, ratio: number | null,
 *   setRatio: (ratio: number | null) => void}} props
 *   `step`: the current step; `reply`: the best reply so far, while a job searches for better ones
 */
export function MatrixCard({ dialog, step, reply, job, act, stop, frontier, focus, setPreview, ratio, setRatio }) {
  const [mode, setMode] = useState(
    /** @type {Mode} */ (localStorage.getItem(MODE_KEY) === 'percent' ? 'percent' : 'counts'),
  );
  const [edits, setEdits] = useState(/** @type {Edits} */ ({}));
  const [words, setWords] = useState('');
  const [strategies, setStrategies] = useState(/** @type {string[] | null} */ (null));
  const [keep, setKeep] = useState(true);
  const [choice, setChoice] = useState(/** @type {string | null} */ (null));
  const [reject, setReject] = useState(/** @type {number | null} */ (null));
  const [problem, setProblem] = useState('');
  const [chosen, setChosen] = useState({ row: 0, column: Math.min(1, step.after.classes.length) });
  const [since, setSince] = useSince();
  const shown = reply ?? step;
  const start = dialog.steps[0].after;
  const kept = step.preference ?? '';
  const keeps = keep && kept !== '';
  const wants = words.trim() ? [words.trim()] : [];
  if (reject !== null) wants.push(`rejected <= ${reject}${reject > 0 ? '%' : ''}`);
  const then = choice !== COST ? choice : ratio === null ? null : costGoal(dialog, focus, ratio);
  // Another goal alone is a request too: for the limits of the step.
  const edited = Object.keys(edits).length > 0 || wants.length > 0;
  if (!edited && keeps && then !== null && then !== step.goal) wants.push(limitsText(step));
  const { reading, reads, any, now } = useReading(dialog, step.after, edits, wants, then, keeps);
  const clear = useCallback(() => {
    setEdits({});
    setWords('');
    setReject(null);
    setChoice(null);
    setProblem('');
  }, []);
  useEffect(clear, [dialog.position]);
  const still = act.busy;
  const local = useMemo(() => {
    if (!frontier || dialog.classes.length > 2 || wants.length) return null;
    return previewOf(frontier, step, edits, keeps, then);
  }, [frontier, edits, wants.length, keeps, then, step]);
  const previews = any && !still && !problem && !reply;
  const read = reads ? null : reading; // the answer to earlier edits is not shown for these
  const approximate = strategies !== null; // the server previews the default strategies
  const outcome = useMemo(() => {
    if (!previews || read?.error) return null;
    return read?.after ? { after: read.after, reachable: read.met ?? true, approximate } : local;
  }, [previews, read, local, approximate]);
  useEffect(() => {
    setPreview(
      outcome && {
        ...errorsOf(outcome.after, focus),
        approximate: outcome.approximate,
        reachable: outcome.reachable,
      },
    );
  }, [outcome, focus]);
  const withoutRatio = choice === COST && ratio === null;
  const latest = useRef({ still: still || withoutRatio, problem, any, now });
  latest.current = { still: still || withoutRatio, problem, any, now };
  const ask = async () => {
    await null; // render the last input first
    if (latest.current.still || latest.current.problem || !latest.current.any) return;
    const found = await latest.current.now();
    if (!found || found.error || found.preference === null) return;
    announce(`Requested: ${found.sentences.join('; ')}`);
    await act.prefer([found.preference], { keep: false, strategies }); // it has the earlier limits, if they are kept
  };
  /** @param {Mode} to */
  const choose = (to) => {
    setMode(to);
    setEdits((now) => converted(now, step.after, to));
    localStorage.setItem(MODE_KEY, to);
  };
  const goal = choice ?? reading?.goal ?? step.goal ?? '';
  const goals = {
    choices: (reading?.goals.length ? reading.goals : keeps ? step.goals : []).filter((one) => ratioOf(one.then) === null),
    value: goal,
    choose: setChoice,
    cost: choice === COST || ratioOf(goal) !== null,
    ratio: choice === COST ? ratio : (ratioOf(goal) ?? ratio),
    chooseCost: (/** @type {number | null} */ to) => {
      setChoice(COST);
      setRatio(to);
    },
    focus,
  };
  const allowed = keeps ? step.reject_percent : 0;
  const drafts = useMemo(() => (reply ? {} : edits), [reply, edits]);
  const changeReject = (/** @type {number} */ value) => setReject(value === allowed ? null : value);
  const searching = job !== null && job.kind !== 'train' && job.kind !== 'accept';
  return html`<section class="card matrix-card" aria-labelledby="matrix-head">
    <div class="row matrix-head">
      <h2 id="matrix-head" class="grow">
        Confusion matrix${' '}
        <span class="muted small matrix-step">${placeText(shown)}</span>
      </h2>
      <${ModeSwitch} mode=${mode} choose=${choose} />
    </div>
    <${MatrixGrid}
      matrix=${shown.after}
      before=${since === 'start' ? start : outcome || shown.number === 0 ? shown.after : shown.before}
      mode=${mode}
      edits=${drafts}
      still=${still}
      change=${setEdits}
      tell=${setProblem}
      ask=${ask}
      chosen=${chosen}
      choose=${setChosen}
      outcome=${outcome}
      focus=${dialog.classes.length > 2 ? focus : null}
    />
    <${ChosenCell} matrix=${shown.after} row=${chosen.row} column=${chosen.column} act=${act} />
    <${Summary}
      now=${outcome?.after ?? shown.after}
      base=${since === 'start' ? start : outcome ? shown.after : shown.before}
      since=${since}
      setSince=${setSince}
      first=${shown.number === 0}
      mark=${markOf(outcome)}
    />
    <${RejectSlider} value=${reject ?? allowed} still=${still} change=${changeReject} />
    <${AskBox}
      reading=${reading}
      problem=${problem}
      reads=${reads}
      any=${any}
      still=${still}
      keep=${keep}
      kept=${kept}
      setKeep=${setKeep}
      words=${words}
      setWords=${setWords}
      strategies=${strategies}
      setStrategies=${setStrategies}
      ask=${ask}
      clear=${clear}
      outcome=${outcome}
      goals=${goals}
      announced=${outcome && !reads ? previewText(outcome.after) : ''}
    />
    ${
      searching && !reply
        ? html`<div class="reply-live">
          <span class="spinner-ring" aria-hidden="true"></span>
          <span class="grow">${liveText(job, null)}</span>
          <button type="button" class="button button-small" onClick=${stop}>Stop</button>
        </div>`
        : null
    }
    ${
      reply || step.number > 0
        ? html`<${ReplyBox} dialog=${dialog} reply=${shown} live=${searching && reply !== null} job=${job} act=${act} stop=${stop} />`
        : null
    }
  </section>`;
}
