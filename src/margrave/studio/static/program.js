// The program panel: the graph with the routes of errors, the selected node, tuning node by node, and growing.
// @ts-check

import { ApiError, get, query } from './api.js';
import {
  announce, Empty, html, nameClass, Notice, plural, sentence, Spinner, useDebounced, useEffect, useLoad, useMemo, useRef, useState,
} from './kit.js';
import { stepOf } from './dialog_state.js';
import { GraphLegend, ProgramGraph } from './program_graph.js';
import { keyOf } from './program_layout.js';
import { NodeCard } from './program_node.js';
import { editText, routesOf } from './program_words.js';

/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').PanelProps} PanelProps */
/** @typedef {import('./program_words.js').Route} Route */

/** The nodes that are tuned one after another, and those that are done. @typedef {{all: boolean, done: string[]}} Walking */

/** The martingale program behind the current step. @param {PanelProps} props */
export function ProgramPanel({ dialog, act }) {
  const [threshold, setThreshold] = useState(0.3);
  const rested = useDebounced(threshold, 250);
  const { data, error, loading, reload } = useLoad(
    (signal) => get(query(`/api/dialogs/${encodeURIComponent(dialog.id)}/program`, { threshold: rested }), signal),
    [dialog.id, dialog.position, dialog.steps.length, rested],
  );
  const program = /** @type {Program | null} */ (data);
  const none = error instanceof ApiError && error.status === 409;
  if (none) return html`<${Empty} title="Nothing to show here">${sentence(error)}<//>`;
  if (error && !program) {
    return html`<${Notice}
      kind="bad"
      title="The program could not be shown"
      action=${html`<button type="button" class="button" onClick=${reload}>Try again</button>`}
    >
      ${sentence(error)}
    <//>`;
  }
  if (!program) return html`<${Spinner} label="Loading the program" />`;
  return html`<${Shown}
    act=${act}
    dialog=${dialog}
    program=${program}
    loading=${loading}
    threshold=${threshold}
    onThreshold=${setThreshold}
  />`;
}

/** What the number of levels means for two classes, and how the program grows. */
const TIES = {
  odd: 'It grows by two levels, since an odd number of levels avoids ties.',
  even: 'With an even number of levels the votes can tie; one more level avoids this.',
};

/** Whether a node has a learner and rows of several classes. @param {ProgramNode} node */
const canBeTuned = (node) => node.kind === 'learner' && node.sizes.filter((n) => n > 0).length > 1;

/**
 * @param {{act: Act, dialog: Dialog, program: Program, loading: boolean, threshold: number,
 *   onThreshold: (threshold: number) => void}} props
 */
function Shown({ act, dialog, program, loading, threshold, onThreshold }) {
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const [walk, setWalk] = useState(/** @type {Walking | null} */ (null));
  const routes = useMemo(() => routesOf(program), [program.classes.join(), program.positive]);
  const [chosenRoute, setRoute] = useState(/** @type {Route | null} */ (null));
  const step = stepOf(dialog, program.step);
  const rejects = step?.after.counts.some((row) => row[program.classes.length] > 0) ?? false;
  const route = rejects ? null : chosenRoute;
  const asked = useRef(false);
  const two = program.classes.length === 2;
  const even = program.n_levels % 2 === 0;
  const more = two && !even ? 2 : 1;
  const weak = program.nodes.filter((node) => node.weak);
  const tunable = program.nodes.filter(canBeTuned);
  const ahead = walk && (walk.all ? tunable : weak).filter((node) => !walk.done.includes(keyOf(node)));
  const walking = ahead?.[0] ?? null;
  const shown = walking ?? program.nodes.find((node) => keyOf(node) === chosen) ?? null;

  /** @param {string} key */
  const choose = (key) => {
    setWalk(null);
    setChosen(key);
  };
  /** @param {ProgramNode} node @param {string[]} wants */
  const ask = async (node, wants) => {
    const job = await act.run('program/tune', { node: node.id, wants });
    if (job?.state !== 'done') return;
    asked.current = true;
    if (walk) skip(node);
  };
  const stop = () => {
    setChosen(shown ? keyOf(shown) : null);
    setWalk(null);
  };
  /** @param {ProgramNode} node */
  const skip = (node) => setWalk((now) => now && { ...now, done: [...now.done, keyOf(node)] });

  const edited = step && program.step === dialog.position ? editText(program, step) : null;
  const words = edited?.join(' ');
  useEffect(() => {
    if (words && asked.current) announce(words);
    if (words) asked.current = false;
  }, [words]);

  return html`<div class="panel-stack" aria-busy=${loading}>
    <div class="panel-head">
      <h2>The program</h2>
      <div class="row">
        <button type="button" class="button" disabled=${act.busy} onClick=${() => act.run('program/grow', { levels: more })}>
          Grow ${more === 1 ? 'a level' : 'two levels'}
        </button>
        ${[
          { all: true, name: 'Tune all nodes', n: tunable.length },
          { all: false, name: 'Tune the weak nodes', n: weak.length },
        ].map(
          ({ all, name, n }) => html`<button
            key=${name}
            type="button"
            class=${all ? 'button' : 'button-primary'}
            disabled=${act.busy || n === 0 || walk !== null}
            onClick=${() => setWalk({ all, done: [] })}
          >
            ${name}
          </button>`,
        )}
      </div>
      <p class="muted">
        ${plural(program.n_levels, 'level')}, ${plural(program.nodes.length, 'node')}. Each learner sends a row to
        the side of its prediction; the class with the most votes wins. ${two ? TIES[even ? 'even' : 'odd'] : ''}
      </p>
    </div>
    ${rejects
      ? html`<p class="muted small">
          This step rejects rows. The program counts them by their votes, so the routes of the errors are not shown.
        </p>`
      : html`<${Routes} routes=${routes} route=${chosenRoute} onRoute=${setRoute} />`}
    <${Sides} program=${program} />
    <${ProgramGraph} program=${program} route=${route} chosen=${shown ? keyOf(shown) : null} onChoose=${choose} />
    <${GraphLegend} program=${program} route=${route} />
    <${Threshold} value=${threshold} weak=${weak.length} onValue=${onThreshold} />
    ${edited
      ? html`<${Notice} title="What this step changed">${edited.map((one) => html`<p>${one}</p>`)}<//>`
      : null}
    ${walk
      ? html`<${Walk} all=${walk.all} done=${walk.done.length} left=${ahead?.length ?? 0} loading=${loading} onStop=${stop} />`
      : null}
    ${shown
      ? html`<${NodeCard}
          key=${keyOf(shown)}
          program=${program}
          node=${shown}
          readOnly=${dialog.read_only}
          busy=${act.busy || loading}
          onAsk=${(/** @type {string[]} */ wants) => ask(shown, wants)}
          actions=${walking
            ? html`<button type="button" class="button" disabled=${act.busy} onClick=${() => skip(walking)}>Skip</button>`
            : null}
        />`
      : html`<p class="muted">Select a node to see its matrix${dialog.read_only ? '' : ' and to tune it'}.</p>`}
    <p class="muted small">
      Nodes are tuned on the rows that these matrices count, so the matrices are optimistic. The certificate is
      not: it uses rows that training and steering did not use.
    </p>
  </div>`;
}

/**
 * What the drawing shows: all rows, or the routes of some errors.
 * @param {{routes: Route[], route: Route | null, onRoute: (route: Route | null) => void}} props
 */
function Routes({ routes, route, onRoute }) {
  const choices = [{ name: 'All rows', one: /** @type {Route | null} */ (null) }, ...routes.map((one) => ({ name: one.name, one }))];
  return html`<div class="row">
    <div class="switch routes" role="group" aria-label="Routes of">
      ${choices.map(
        ({ name, one }) => html`<button key=${name} type="button" aria-pressed=${one === route} onClick=${() => onRoute(one)}>
          ${name[0].toUpperCase() + name.slice(1)}
        </button>`,
      )}
    </div>
  </div>`;
}

/** The directions of the votes, above the drawing. @param {{program: Program}} props */
function Sides({ program }) {
  if (program.classes.length !== 2) return null;
  const right = program.positive === program.classes[0] ? 0 : 1;
  return html`<p class="sides muted small" aria-hidden="true">
    <span>← votes for ${nameClass(program.classes[1 - right])}</span>
    <span>votes for ${nameClass(program.classes[right])} →</span>
  </p>`;
}

/** @param {{value: number, weak: number, onValue: (value: number) => void}} props */
function Threshold({ value, weak, onValue }) {
  return html`<div class="threshold">
    <label for="program-threshold">A node is weak if its advantage is below</label>
    <input
      id="program-threshold"
      class="slider"
      type="range"
      min="0"
      max="0.5"
      step="0.01"
      value=${value}
      onInput=${(/** @type {any} */ event) => onValue(Number(event.currentTarget.value))}
    />
    <output for="program-threshold">${value.toFixed(2)}</output>
    <span class="muted">${plural(weak, 'weak node')}</span>
  </div>`;
}

/**
 * The progress of tuning node by node.
 * @param {{all: boolean, done: number, left: number, loading: boolean, onStop: () => void}} props
 */
function Walk({ all, done, left, loading, onStop }) {
  const kind = all ? 'node' : 'weak node';
  const text = left ? `${kind[0].toUpperCase()}${kind.slice(1)} ${done + 1} of ${done + left}` : `No ${kind} is left`;
  return html`<div class="walk" role="status">
    <strong>${text}</strong>
    ${loading ? html`<${Spinner} label="Updating" />` : null}
    <button type="button" class="button button-small" onClick=${onStop}>${left ? 'Stop' : 'Done'}</button>
  </div>`;
}
