// One node of a program: its local matrix, its advantages, and a form to tune it.
// @ts-check

import { cellKind, columnText, count, html, Icon, labelText, nameClass, predictedText, rate, rowTotals, SmallMatrix, Tag, tint, useEffect, useState } from './kit.js';
import { advantageText, KINDS, nameNode, wanted } from './program_words.js';

/** @typedef {import('./types.js').Program} Program */
/** @typedef {import('./types.js').ProgramNode} ProgramNode */

/** Why a node cannot be tuned. @type {Record<ProgramNode["kind"], string>} */
const FIXED = {
  learner: '',
  constant: 'Only rows of one class reached this node in training, so it predicts that class. There is nothing to tune.',
  frozen: 'Almost only rows of one class reach this node, so the path ends here. There is nothing to tune.',
  empty: 'No training row reached this node.',
  leaf: 'The path ends here, and the class with the most votes wins. There is nothing to tune.',
};

/**
 * A node, with an editor of its matrix if it has a learner.
 * @param {{program: Program, node: ProgramNode, readOnly: boolean, busy: boolean,
 *   onAsk: (wants: string[]) => void, actions?: any}} props
 */
export function NodeCard({ program, node, readOnly, busy, onAsk, actions }) {
  const nClasses = node.sizes.filter((n) => n > 0).length;
  const editable = node.kind === 'learner' && nClasses > 1;
  return html`<section class="node-card" aria-label="Selected node">
    <div class="node-head">
      <h3>${nameNode(program, node)}</h3>
      <${Tag}>${KINDS[node.kind]}<//>
      ${node.weak ? html`<${Tag} kind="warn">weak<//>` : null}
      ${node.tuned ? html`<${Tag} kind="good">tuned: ${node.tuned}<//>` : null}
    </div>
    <p class="muted">
      ${reachText(program, node)}${node.predicted === null ? '' : ` All are ${predictedText(node.predicted)}.`}
    </p>
    <div class="node-body">
      ${editable && readOnly
        ? html`<${SmallMatrix} matrix=${node.confusion} caption="Local confusion matrix" />`
        : editable
        ? html`<${MatrixEditor} node=${node} busy=${busy} onAsk=${onAsk} actions=${actions} />`
        : html`<div class="stack">
            <p>${node.kind === 'learner' ? 'Only rows of one class reach this node, so there is nothing to tune.' : FIXED[node.kind]}</p>
            ${actions ? html`<div class="row">${actions}</div>` : null}
          </div>`}
      ${node.kind === 'learner' ? html`<${Advantages} program=${program} node=${node} />` : null}
    </div>
  </section>`;
}

/** @param {Program} program @param {ProgramNode} node */
function reachText(program, node) {
  const totals = program.nodes[0].sizes;
  const counts = program.classes.map(
    (label, side) => `${count(node.sizes[side])} ${nameClass(label)} (${rate(node.sizes[side], totals[side])})`,
  );
  return `This node gets ${counts.join(' and ')}.`;
}

/** The fraction of right predictions minus one half, for each class. @param {{program: Program, node: ProgramNode}} props */
function Advantages({ program, node }) {
  return html`<div class="advantages">
    <h4>Advantage</h4>
    <p class="muted small">Fraction of right predictions minus one half; weak below ${program.threshold.toFixed(2)}.</p>
    <dl>
      ${program.classes.map((label, side) => {
        const advantage = node.advantages[side];
        const low = advantage !== null && advantage < program.threshold;
        const from = Math.min(0, advantage ?? 0);
        return html`<div>
          <dt>${labelText(label)}</dt>
          <dd>
            <span class="gauge" aria-hidden="true">
              <span
                class=${low ? 'gauge-fill gauge-low' : 'gauge-fill'}
                style=${{ left: `${(from + 0.5) * 100}%`, width: `${Math.abs(advantage ?? 0) * 100}%` }}
              ></span>
              <span class="gauge-mark" style=${{ left: `${(program.threshold + 0.5) * 100}%` }}></span>
            </span>
            <span class="number">${advantageText(advantage)}</span>
          </dd>
        </div>`;
      })}
    </dl>
  </div>`;
}

/**
 * The local matrix with a field in each cell, and the limits that the edits mean.
 * @param {{node: ProgramNode, busy: boolean, onAsk: (wants: string[]) => void, actions?: any}} props
 */
function MatrixEditor({ node, busy, onAsk, actions }) {
  const { confusion: matrix } = node;
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  useEffect(() => setTyped({}), [node]);
  const read = Object.entries(typed).flatMap(([place, text]) => {
    const [row, column] = place.split(' ').map(Number);
    const found = wanted(matrix, row, column, text);
    return found ? [found] : [];
  });
  const error = read.flatMap((one) => ('error' in one ? [one.error] : []))[0];
  const limits = read.flatMap((one) => ('want' in one ? [one] : []));
  const ready = !error && limits.length > 0 && !busy;
  /** @param {Event} event */
  const ask = (event) => {
    event.preventDefault();
    if (ready) onAsk(limits.map((one) => one.want));
  };
  return html`<form class="node-editor" onSubmit=${ask}>
    <${EditorTable} node=${node} typed=${typed} onType=${setTyped} />
    <p class=${error ? 'bad' : limits.length ? '' : 'muted'} aria-live="polite">
      ${error ?? (limits.length ? `At this node: ${limits.map((one) => one.sentence).join(', and ')}.` : 'Type a limit into a cell, such as 3 or 2%.')}
    </p>
    <div class="row">
      <button type="submit" class="button-primary" disabled=${!ready}>Tune this node</button>
      ${limits.length || error
        ? html`<button type="button" class="button-quiet" onClick=${() => setTyped({})}>Undo edits</button>`
        : null}
      ${actions ?? null}
    </div>
  </form>`;
}

/**
 * @param {{node: ProgramNode, typed: Record<string, string>,
 *   onType: (typed: Record<string, string>) => void}} props
 */
function EditorTable({ node, typed, onType }) {
  const { confusion: matrix } = node;
  const totals = rowTotals(matrix);
  return html`<div class="scroll-x">
    <table class="small-matrix">
      <caption class="hidden">Local confusion matrix; each cell can be edited</caption>
      <thead>
        <tr>
          <td></td>
          ${matrix.classes.map((label) => html`<th scope="col">${columnText(label)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${matrix.classes.map(
          (label, row) => html`<tr>
            <th scope="row">true ${labelText(label)}</th>
            ${matrix.classes.map((predicted, column) => {
              const place = `${row} ${column}`;
              const n = matrix.counts[row][column];
              const changed = place in typed && typed[place].trim() !== String(n);
              return html`<td
                class=${`cell-${cellKind(matrix, row, column)} ${changed ? 'cell-changed' : ''}`}
                style=${{ '--tint': tint(totals[row] ? n / totals[row] : 0) }}
              >
                <input
                  class="cell-input"
                  type="text"
                  inputmode="numeric"
                  autocomplete="off"
                  disabled=${totals[row] === 0}
                  aria-label=${`${nameClass(label)} ${predictedText(predicted)}, ${row === column ? 'at least' : 'at most'}; now ${count(n)} of ${count(totals[row])}`}
                  value=${typed[place] ?? String(n)}
                  onFocus=${(/** @type {any} */ event) => event.currentTarget.select()}
                  onInput=${(/** @type {any} */ event) => onType({ ...typed, [place]: event.currentTarget.value })}
                />
                <small>${changed ? html`<${Icon} name="edit" />was ${count(n)}` : rate(n, totals[row])}</small>
              </td>`;
            })}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
