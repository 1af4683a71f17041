// The program panel: the graph, the selected node, tuning of the weak nodes, and growing.
// @ts-check

import { ApiError, get, query } from './api.js';
import { announce, Empty, html, Notice, plural, sentence, Spinner, useDebounced, useLoad, useState } from './kit.js';
import { GraphLegend, ProgramGraph } from './program_graph.js';
import { keyOf } from './program_layout.js';
import { NodeCard } from './program_node.js';
import { votesText } from './program_words.js';

/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').PanelProps} PanelProps */

/** The martingale program behind the current step. @param {PanelProps} props */
export const ProgramPanel = ({ dialog, act }) =>
  dialog.kind === 'program'
    ? html`<${Loaded} dialog=${dialog} act=${act} />`
    : html`<${NoProgram} dialog=${dialog} />`;

/** @param {PanelProps} props */
function Loaded({ dialog, act }) {
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
    program=${program}
    loading=${loading}
    threshold=${threshold}
    onThreshold=${setThreshold}
  />`;
}

/** @param {{dialog: Dialog}} props */
function NoProgram({ dialog }) {
  const place = dialog.table ? `#/new/${encodeURIComponent(dialog.table.id)}/program` : '#/new';
  return html`<${Empty}
    title="This dialog has a committee, not a program"
    action=${html`<a class="button" href=${place}>Start a program on ${dialog.table ? 'the same' : 'a'} table</a>`}
  >
    A program has learners in layers. The prediction of a learner is a vote, which sends a row to a node of the
    next layer; in the end the class with the most votes wins. Each learner can be inspected and tuned.
  <//>`;
}

/** What the number of levels means for two classes, and how the program grows. */
const TIES = {
  odd: 'It grows by two levels, since an odd number of levels avoids ties.',
  even: 'With an even number of levels the votes can tie; one more level avoids this.',
};

/**
 * @param {{act: Act, program: Program, loading: boolean, threshold: number,
 *   onThreshold: (threshold: number) => void}} props
 */
function Shown({ act, program, loading, threshold, onThreshold }) {
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const [walked, setWalked] = useState(/** @type {string[] | null} */ (null));
  const two = program.classes.length === 2;
  const even = program.n_levels % 2 === 0;
  const more = two && !even ? 2 : 1;
  const weak = program.nodes.filter((node) => node.weak);
  const ahead = walked && weak.filter((node) => !walked.includes(keyOf(node)));
  const walking = ahead?.[0] ?? null;
  const shown = walking ?? program.nodes.find((node) => keyOf(node) === chosen) ?? null;

  /** @param {string} key */
  const choose = (key) => {
    setWalked(null);
    setChosen(key);
  };
  /** @param {ProgramNode} node @param {string[]} wants */
  const ask = async (node, wants) => {
    const job = await act.run('program/tune', { node: node.id, wants });
    if (job?.state !== 'done') return;
    announce(`The node after ${votesText(program, node)} was tuned.`);
    if (walked) setWalked([...walked, keyOf(node)]);
  };
  const stop = () => {
    setChosen(shown ? keyOf(shown) : null);
    setWalked(null);
  };
  /** @param {ProgramNode} node */
  const skip = (node) => setWalked([...(walked ?? []), keyOf(node)]);

  return html`<div class="panel-stack" aria-busy=${loading}>
    <div class="panel-head">
      <h2>The program</h2>
      <div class="row">
        <button type="button" class="button" disabled=${act.busy} onClick=${() => act.run('program/grow', { levels: more })}>
          Grow ${more === 1 ? 'a level' : 'two levels'}
        </button>
        <button
          type="button"
          class="button-primary"
          disabled=${act.busy || weak.length === 0 || walked !== null}
          onClick=${() => setWalked([])}
        >
          Tune the weak nodes
        </button>
      </div>
      <p class="muted">
        ${plural(program.n_levels, 'level')}, ${plural(program.nodes.length, 'node')}. Each learner sends a row to
        the side of its prediction; the class with the most votes wins. ${two ? TIES[even ? 'even' : 'odd'] : ''}
      </p>
    </div>
    <${Sides} program=${program} />
    <${ProgramGraph} program=${program} chosen=${shown ? keyOf(shown) : null} onChoose=${choose} />
    <${GraphLegend} program=${program} />
    <${Threshold} value=${threshold} weak=${weak.length} onValue=${onThreshold} />
    ${walked
      ? html`<${Walk} done=${walked.length} left=${ahead?.length ?? 0} loading=${loading} onStop=${stop} />`
      : null}
    ${shown
      ? html`<${NodeCard}
          key=${keyOf(shown)}
          program=${program}
          node=${shown}
          busy=${act.busy || loading}
          onAsk=${(/** @type {string[]} */ wants) => ask(shown, wants)}
          actions=${walking
            ? html`<button type="button" class="button" disabled=${act.busy} onClick=${() => skip(walking)}>Skip</button>`
            : null}
        />`
      : html`<p class="muted">Select a node to see its matrix and to tune it.</p>`}
    <p class="muted small">
      Nodes are tuned on the rows that these matrices count, so the matrices are optimistic. The certificate is
      not: it uses rows that no step has seen.
    </p>
  </div>`;
}

/** The directions of the votes, above the drawing. @param {{program: Program}} props */
function Sides({ program }) {
  if (program.classes.length !== 2) return null;
  const right = program.positive === program.classes[0] ? 0 : 1;
  return html`<p class="sides muted small" aria-hidden="true">
    <span>← votes for ${program.classes[1 - right]}</span>
    <span>votes for ${program.classes[right]} →</span>
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
 * The progress of tuning the weak nodes.
 * @param {{done: number, left: number, loading: boolean, onStop: () => void}} props
 */
function Walk({ done, left, loading, onStop }) {
  const total = done + left;
  const text = left ? `Weak node ${done + 1} of ${total}` : 'No weak node is left';
  return html`<div class="walk" role="status">
    <strong>${text}</strong>
    ${loading ? html`<${Spinner} label="Updating" />` : null}
    <button type="button" class="button button-small" onClick=${onStop}>${left ? 'Stop' : 'Done'}</button>
  </div>`;
}
