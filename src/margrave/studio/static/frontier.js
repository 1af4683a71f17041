// The frontier panel: all reachable trade-offs, the steps so far, and a form to request a point.
// @ts-check

import { Chart, chartFile } from './charts.js';
import { stepOf } from './dialog_state.js';
import {
  bestFrom,
  curveId,
  curveNear,
  fnText,
  fpText,
  frontierCsv,
  frontierOption,
  hullOf,
  inView,
  isMember,
  scaled,
  stepPoints,
  strategyText,
  viewOf,
  visited,
  within,
} from './frontier_chart.js';
import {
  Field,
  Icon,
  Notice,
  Spinner,
  count,
  errorNames,
  html,
  nameClass,
  plural,
  quoted,
  rate,
  saveFile,
  sentence,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from './kit.js';
import { rejectedOf } from './matrix_counts.js';

/** @typedef {import('./frontier_chart.js').Point} Point */
/** @typedef {import('./charts.js').View} View */
/** @typedef {import('./frontier_chart.js').Frontier} Frontier */
/** @typedef {import('./frontier_chart.js').Part} Part */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').PanelProps} PanelProps */
/** @typedef {import('./types.js').Preview} Preview */
/** @typedef {import('./types.js').Shared} Shared */

/** @type {{name: Part, text: string}[]} */
const PARTS = [
  { name: 'here', text: 'Near this step' },
  { name: 'steps', text: 'All steps' },
  { name: 'whole', text: 'Everything' },
];

/** The reachable trade-offs. @param {PanelProps} props */
export function FrontierPanel({ dialog, act, shared }) {
  const { error, loading, reload } = shared.frontier;
  const data = frontierOf(shared);
  const frontier = useMemo(() => {
    if (!data) return null;
    const best = bestFrom(data, dialog.position);
    return /** @type {Frontier} */ ({ ...data, best, hull: hullOf(best), trajectory: visited(dialog, data.positive) });
  }, [data, dialog.steps, dialog.position]);
  return html`<div class="panel-stack">
    <${FocusChoice} dialog=${dialog} shared=${shared} />
    ${
      frontier
        ? html`<${Drawn}
            key=${String(frontier.positive)}
            dialog=${dialog}
            act=${act}
            shared=${shared}
            frontier=${frontier}
            loading=${loading}
          />`
        : error && !loading
          ? html`<${Notice}
              kind="bad"
              title="The frontier could not be drawn"
              action=${html`<button type="button" class="button" onClick=${reload}>Try again</button>`}
            >
              ${sentence(error)}
            <//>`
          : html`<${Spinner} label="Computing the frontier" />`
    }
  </div>`;
}

/** The frontier of the class in focus; null while that of another class is there. @param {Shared} shared */
export const frontierOf = ({ frontier: { data }, focus }) => (data?.positive === focus ? data : null);

/**
 * The choice of the class whose errors are shown; for two classes there is none.
 * @param {{dialog: Dialog, shared: Shared}} props
 */
export function FocusChoice({ dialog, shared }) {
  if (dialog.classes.length < 3) return null;
  return html`<${Field}
    id="focus"
    label="Class in focus"
    hint="False positives are rows of the other classes with this prediction. False negatives are rows of this class with another one."
  >
    <select
      id="focus"
      value=${String(dialog.classes.indexOf(shared.focus))}
      onChange=${(/** @type {any} */ event) => shared.setFocus(dialog.classes[Number(event.currentTarget.value)])}
    >
      ${dialog.classes.map((label, place) => html`<option value=${String(place)}>${nameClass(label)}</option>`)}
    </select>
  <//>`;
}

/**
 * A limit on the false positives of a class: a request gives the fewest other errors within it.
 * @param {Dialog} dialog @param {Label} label @param {number} limit
 */
export const fpLimit = (dialog, label, limit) =>
  dialog.classes.length === 2 ? `fp <= ${limit}` : `fp(${quoted(label)}) <= ${limit}`;

/** @param {Dialog} dialog @param {Frontier} frontier */
const currentStep = (dialog, frontier) =>
  frontier.trajectory.find((step) => step.step === dialog.position) ?? frontier.trajectory[0];

/** The view that was last shown; null if there is none. @param {string} key @param {Frontier} frontier @returns {View | null} */
function storedView(key, frontier) {
  try {
    const { x, y } = JSON.parse(localStorage.getItem(key) ?? '');
    /** @param {[number, number]} range @param {number} all */
    const fits = ([low, high], all) => low >= 0 && low < high && high <= all;
    return fits(x, frontier.n_negative) && fits(y, frontier.n_positive) ? { x, y } : null;
  } catch {
    return null;
  }
}

/**
 * The shown part of the plane: near the current step at first, then as the user left it while the step is in it.
 * @param {Dialog} dialog @param {Frontier} frontier @returns {[View, (view: View) => void]}
 */
function useView(dialog, frontier) {
  const key = `margrave-view-${dialog.id}-${frontier.positive}`;
  const near = () => viewOf(frontier, 'here', dialog.position);
  const [view, setView] = useState(() => storedView(key, frontier) ?? near());
  const here = currentStep(dialog, frontier);
  useEffect(() => {
    if (!inView(view, here)) setView(near());
  }, [here.fp, here.fn]);
  useEffect(() => localStorage.setItem(key, JSON.stringify(view)), [key, view]);
  return [view, setView];
}

/**
 * @param {PanelProps & {frontier: Frontier, loading: boolean}} props
 */
function Drawn({ dialog, act, shared, frontier, loading }) {
  const here = currentStep(dialog, frontier);
  const [view, setView] = useView(dialog, frontier);
  const shown = useRef(view);
  shown.current = view;
  const [limit, setLimit] = useState(/** @type {number | null} */ (null));
  useEffect(() => setLimit(null), [dialog.position]);
  const [hot, setHot] = useState(/** @type {string | null} */ (null));
  const title = useCallback((/** @type {number} */ step) => titleOf(dialog, step), [dialog.steps]);
  const option = useCallback(
    (/** @type {any} */ c, /** @type {number} */ width) =>
      frontierOption(c, width, frontier, () => shown.current, dialog.position, title),
    [frontier, dialog.position, title],
  );
  const chosen = limit === null ? here : frontier.best[within(frontier.best, limit)];
  const cross = useMemo(() => crossOf(shared.preview, chosen), [shared.preview, chosen]);

  /** @param {string} series @param {number} index */
  const pick = (series, index) => {
    if (series !== 'steps') return false;
    const others = stepPoints(frontier)[index].steps.filter((step) => step.step !== dialog.position);
    if (others.length && !act.busy) act.goto(others[others.length - 1].step);
    return true;
  };
  /** @param {number} x */
  const plot = (x) => setLimit(frontier.best[within(frontier.best, x + 0.5)].fp);
  /** @param {Record<string, [number, number]>} ends */
  const zoom = (ends) => {
    /** @param {[number, number]} range @param {number} all @returns {[number, number]} */
    const range = ([low, high], all) => [low * all, high * all];
    const next = {
      x: ends.x ? range(ends.x, frontier.n_negative) : shown.current.x,
      y: ends.y ? range(ends.y, frontier.n_positive) : shown.current.y,
    };
    shown.current = next; // the ends of the axes may come one after the other
    setView(next);
    return next;
  };
  // A preview only moves the crosshair: the rest stays as it is.
  const below = useMemo(
    () => html`<${Legend} frontier=${frontier} onHot=${setHot} />
      <${Exports} dialog=${dialog} frontier=${frontier} view=${shown} title=${title} />
      <${AskBar} dialog=${dialog} frontier=${frontier} limit=${limit ?? here.fp} onLimit=${setLimit} act=${act} />
      ${dialog.steps.some((step) => rejectedOf(step.after) > 0)
        ? html`<p class="muted">
            The lines show decisions that reject nothing. A step that rejects some rows may lie below them.
          </p>`
        : null}
      <${Tables} frontier=${frontier} dialog=${dialog} act=${act} />`,
    [dialog, frontier, title, limit, act],
  );
  /** @param {number} x @param {number} y @param {[number, number]} scale */
  const near = (x, y, scale) => curveNear(frontier, x, y, scale);
  const on = { pick, plot, zoom, near };

  return html`<div class="panel-stack" aria-busy=${loading}>
    <div class="panel-head">
      <div>
        <h2>Reachable trade-offs</h2>
        <p class="muted">Each point is a model you can have.</p>
      </div>
      <${ViewChoice} frontier=${frontier} position=${dialog.position} here=${here} view=${view} onView=${setView} />
      <p class="muted small">
        Lower and further left is better.${dialog.read_only ? '' : ' Click a point to choose it.'} Drag the chart to
        move it, and zoom with Ctrl and the wheel; on a touch screen, both with two fingers.
      </p>
    </div>
    <${Chart}
      option=${option}
      label=${describeChart(frontier, dialog.position)}
      tall=${true}
      view=${view}
      cross=${cross}
      hot=${hot}
      on=${on}
    />
    ${below}
  </div>`;
}

/**
 * The crosshair: the point that the edited limits would reach, otherwise the chosen point or the current step.
 * @param {Preview | null} preview @param {{fp: number, fn: number}} chosen
 * @returns {import('./charts.js').Cross}
 */
function crossOf(preview, chosen) {
  const { fp, fn } = preview ?? chosen;
  const about = preview?.approximate ? '≈ ' : '';
  const kind = !preview ? 'chosen' : preview.reachable ? 'preview' : 'unreachable';
  return { x: fp, y: fn, texts: [`${about}${count(fp)}`, `${about}${count(fn)}`], kind };
}

/** The request or the strategy of a step. @param {Dialog} dialog @param {number} number */
function titleOf(dialog, number) {
  const step = stepOf(dialog, number);
  return step?.preference ?? step?.note ?? (number === 0 ? 'the start' : (step?.strategy ?? ''));
}

/** The chart in words, for screen readers. @param {Frontier} frontier @param {number} position */
function describeChart(frontier, position) {
  const names = errorNames(frontier);
  const at = frontier.trajectory.find((step) => step.step === position);
  const current = at ? ` Step ${position} is at ${count(at.fp)} and ${count(at.fn)}.` : '';
  return `${names.fp} against ${names.fn}: ${plural(frontier.best.length, 'best trade-off')}.${current}`;
}

/**
 * Which part of the plane is shown.
 * @param {{frontier: Frontier, position: number, here: {fp: number, fn: number}, view: View,
 *   onView: (view: View) => void}} props
 */
function ViewChoice({ frontier, position, here, view, onView }) {
  /** @param {number} factor */
  const zoom = (factor) =>
    onView({
      x: scaled(view.x, factor, here.fp, frontier.n_negative),
      y: scaled(view.y, factor, here.fn, frontier.n_positive),
    });
  return html`<div class="switch" role="group" aria-label="Part of the plot">
    <button type="button" aria-label="Zoom in" title="Zoom in" onClick=${() => zoom(1 / 1.5)}><${Icon} name="plus" /></button>
    <button type="button" aria-label="Zoom out" title="Zoom out" onClick=${() => zoom(1.5)}><${Icon} name="minus" /></button>
    ${PARTS.map(({ name, text }) => {
      const part = viewOf(frontier, name, position);
      return html`<button
        type="button"
        aria-pressed=${JSON.stringify(part) === JSON.stringify(view)}
        onClick=${() => onView(part)}
      >
        ${text}
      </button>`;
    })}
  </div>`;
}

/**
 * The marks, and the strategies by name: a button highlights its curve. The pointer on a curve shows its name too.
 * @param {{frontier: Frontier, onHot: (series: string | null) => void}} props
 */
const Legend = ({ frontier, onHot }) =>
  html`<ul class="legend" aria-label="Legend">
    <li><span class="key key-best"></span>the best</li>
    <li><span class="key key-hull"></span>lowest cost for some costs</li>
    <li><span class="key key-step" aria-hidden="true">1</span>step</li>
    <li><span class="key key-step key-unmet" aria-hidden="true">2</span>not met</li>
    <li><span class="key key-step key-here" aria-hidden="true">3</span>current step</li>
    ${frontier.curves.map((curve, place) => {
      if (isMember(curve.name)) return null;
      const show = () => onHot(curveId(place));
      const hide = () => onHot(null);
      return html`<li>
        <button type="button" class="legend-curve" onMouseEnter=${show} onFocus=${show} onClick=${show} onMouseLeave=${hide} onBlur=${hide}>
          <span class="key key-strategy"></span>${curve.name}
        </button>
      </li>`;
    })}
    ${frontier.curves.some(({ name }) => isMember(name))
      ? html`<li><span class="key key-strategy"></span>a member alone, for comparison</li>`
      : null}
  </ul>`;

/**
 * Buttons that save what the chart shows.
 * @param {{dialog: Dialog, frontier: Frontier, view: {current: View}, title: (step: number) => string}} props
 */
function Exports({ dialog, frontier, view, title }) {
  const [problem, setProblem] = useState('');
  /** @param {"png" | "svg"} kind */
  const picture = (kind) => {
    const width = 960;
    /** @param {import('./charts.js').Colours} c */
    const option = (c) => {
      const drawn = frontierOption(c, width, frontier, () => view.current, dialog.position, title);
      return {
        ...drawn,
        grid: { ...drawn.grid, top: 92 },
        title: {
          text: 'Reachable trade-offs',
          subtext: dialog.title,
          textStyle: { color: c.ink, fontSize: 16, fontFamily: c.font },
          subtextStyle: { color: c.muted, fontSize: 12, fontFamily: c.font },
        },
      };
    };
    return chartFile(kind, option, width, 600);
  };
  const csv = async () => new Blob([frontierCsv(frontier, title)], { type: 'text/csv' });
  /** @param {() => Promise<Blob>} make @param {string} ending */
  const save = async (make, ending) => {
    setProblem('');
    try {
      saveFile(await make(), `trade-offs.${ending}`);
    } catch (error) {
      setProblem(sentence(error));
    }
  };
  return html`<div class="exports" role="group" aria-label="Save the chart">
    <span class="muted small">Save as</span>
    ${/** @type {[string, string, () => Promise<Blob>][]} */ ([
      ['PNG', 'png', () => picture('png')],
      ['SVG', 'svg', () => picture('svg')],
      ['CSV', 'csv', csv],
    ]).map(
      ([text, ending, make]) => html`<button
        type="button"
        class="button-quiet button-small"
        aria-label=${`Save the chart as ${text}`}
        onClick=${() => save(make, ending)}
      >
        ${text}
      </button>`,
    )}
    ${problem ? html`<span class="bad small" role="alert">${problem}</span>` : null}
  </div>`;
}

/**
 * The limit as a number and a slider, the fewest false negatives, and the button to request it.
 * @param {{dialog: Dialog, frontier: Frontier, limit: number, onLimit: (limit: number) => void, act: Act}} props
 */
function AskBar({ dialog, frontier, limit, onLimit, act }) {
  const { best } = frontier;
  const place = within(best, limit);
  const point = best[place];
  const cost = `${fnText(frontier, point.fn)} (${rate(point.fn, frontier.n_positive)})`;
  /** @param {any} event */
  const type = (event) => {
    const typed = Math.round(Number(event.currentTarget.value));
    if (event.currentTarget.value !== '' && Number.isFinite(typed)) {
      onLimit(Math.min(frontier.n_negative, Math.max(0, typed)));
    }
  };
  /** @param {any} event */
  const slide = (event) => onLimit(best[Number(event.currentTarget.value)].fp);
  /** @param {Event} event */
  const ask = (event) => {
    event.preventDefault();
    act.prefer([fpLimit(dialog, frontier.positive, limit)], { keep: false });
  };
  return html`<form class="ask-bar" onSubmit=${ask}>
    <div class="ask-words">
      <label for="frontier-limit">At most</label>
      <input
        id="frontier-limit"
        class="input-number"
        type="number"
        min="0"
        max=${frontier.n_negative}
        step="1"
        value=${limit}
        onInput=${type}
      />
      <span>of ${count(frontier.n_negative)} ${errorNames(frontier).fp}</span>
      <span class="muted">${rate(limit, frontier.n_negative)}</span>
    </div>
    <input
      type="range"
      class="slider"
      min="0"
      max=${best.length - 1}
      step="1"
      value=${place}
      aria-label="Point of the frontier"
      aria-valuetext=${`At most ${fpText(frontier, point.fp)}, at least ${cost}`}
      onInput=${slide}
    />
    <div class="ask-result">
      <p aria-live="polite">
        causes at least <strong>${cost}</strong>
        <span class="muted">, strategy: ${strategyText(point.name)}</span>
      </p>
      <button type="submit" class="button-primary" aria-label="Apply this point" disabled=${act.busy}>Apply</button>
    </div>
  </form>`;
}

/**
 * The same as tables: the steps, with a button to go to each, the best trade-offs, and the curves.
 * @param {{frontier: Frontier, dialog: Dialog, act: Act}} props
 */
function Tables({ frontier, dialog, act }) {
  const names = errorNames(frontier);
  const [open, setOpen] = useState(false); // a closed table of thousands of rows would slow the page
  return html`<details class="fold" onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>As tables</summary>
    ${open ? html`<${StepTable} frontier=${frontier} dialog=${dialog} act=${act} names=${names} />
    <${BestTable} frontier=${frontier} names=${names} />
    <${CurveTable} frontier=${frontier} names=${names} />` : null}
  </details>`;
}

/**
 * @param {{frontier: Frontier, dialog: Dialog, act: Act, names: {fp: string, fn: string}}} props
 */
function StepTable({ frontier, dialog, act, names }) {
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label="Steps">
      <table class="table">
        <caption>
          Steps of the dialog
        </caption>
        <thead>
          <tr>
            <th scope="col" class="number">Step</th>
            <th scope="col">Requested</th>
            <th scope="col" class="number">${names.fp}</th>
            <th scope="col" class="number">${names.fn}</th>
            <th scope="col"><span class="hidden">Revisit</span></th>
          </tr>
        </thead>
        <tbody>
          ${frontier.trajectory.map(
            (step) => html`<tr>
              <th scope="row" class="number">${step.step}</th>
              <td>${titleOf(dialog, step.step)}${step.met ? '' : ' (not met)'}</td>
              <td class="number">${count(step.fp)}</td>
              <td class="number">${count(step.fn)}</td>
              <td>
                ${step.step === dialog.position
                  ? 'current step'
                  : html`<button
                      type="button"
                      class="button-quiet button-small"
                      disabled=${act.busy}
                      aria-label=${`Revisit step ${step.step}`}
                      onClick=${() => act.goto(step.step)}
                    >
                      Revisit
                    </button>`}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

/** @param {{frontier: Frontier, names: {fp: string, fn: string}}} props */
function BestTable({ frontier, names }) {
  return html`
    <div class="scroll-both" tabindex="0" role="region" aria-label="Best trade-offs">
      <table class="table">
        <caption>
          Best trade-offs
        </caption>
        <thead>
          <tr>
            <th scope="col" class="number">${names.fp}</th>
            <th scope="col" class="number">${names.fn}</th>
            <th scope="col">Strategy</th>
          </tr>
        </thead>
        <tbody>
          ${frontier.best.map(
            (point) => html`<tr>
              <td class="number">
                ${count(point.fp)} <span class="muted">${rate(point.fp, frontier.n_negative)}</span>
              </td>
              <td class="number">
                ${count(point.fn)} <span class="muted">${rate(point.fn, frontier.n_positive)}</span>
              </td>
              <td>${strategyText(point.name)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

/** @param {{frontier: Frontier, names: {fp: string, fn: string}}} props */
function CurveTable({ frontier, names }) {
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label="Curves">
      <table class="table">
        <caption>
          Curves, each at its fewest errors
        </caption>
        <thead>
          <tr>
            <th scope="col">Strategy</th>
            <th scope="col" class="number">${names.fp}</th>
            <th scope="col" class="number">${names.fn}</th>
          </tr>
        </thead>
        <tbody>
          ${frontier.curves.map(({ name, fp, fn }) => {
            const fewest = fp.reduce((best, n, place) => (n + fn[place] < fp[best] + fn[best] ? place : best), 0);
            return html`<tr>
              <th scope="row">${strategyText(name)}</th>
              <td class="number">${count(fp[fewest])}</td>
              <td class="number">${count(fn[fewest])}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`;
}
