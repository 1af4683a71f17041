// The four parts of a table, drawn in proportion, and what the certify part can guarantee.
// @ts-check

import { count, html, labelText, percent, plural } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Parts} Parts */
/** @typedef {import('./types.js').Support} Support */

/** What the rows to train and to tune on do: @type {Record<Dialog["kind"], [string, string][]>} */
const LEARN = {
  committee: [
    ['Train only', 'the members learn from these'],
    [
      'Train and tune',
      'the members learn from these too; the matrix counts each as judged by members that have not seen it',
    ],
  ],
  program: [
    ['Train', 'the program learns from these'],
    ['Tune', 'the matrix counts these, which the program has not learned from'],
  ],
};

/**
 * The parts as they are drawn. The members of a committee are trained and judged crosswise, so its
 * tuned rows are some of the trained.
 * @param {Parts} parts @param {Dialog["kind"]} kind
 */
function pieces(parts, kind) {
  const [[train, trains], [tune, tunes]] = LEARN[kind];
  const only = kind === 'committee' ? parts.train - parts.tune : parts.train;
  const certifies =
    parts.certify > 0
      ? 'no step sees these before the guarantee'
      : 'none is kept apart, so nothing can be promised';
  return [
    { key: 'train', name: train, n: only, about: trains },
    { key: 'tune', name: tune, n: parts.tune, about: tunes },
    { key: 'certify', name: 'Certify', n: parts.certify, about: certifies },
    { key: 'unused', name: 'Unused', n: parts.unused, about: 'left out: more rows of groups that certify' },
  ];
}

/** The parts as a bar with a legend. @param {{parts: Parts, kind: Dialog["kind"]}} props */
export function PartsBar({ parts, kind }) {
  const all = pieces(parts, kind);
  const drawn = all.filter(({ n }) => n > 0);
  const total = drawn.reduce((sum, { n }) => sum + n, 0);
  return html`<div class="parts">
    <div class="parts-bar" aria-hidden="true">
      ${drawn.map(
        ({ key, name, n }) =>
          html`<div key=${key} class=${`part part-${key}`} style=${{ flexGrow: n }} title=${`${name}: ${count(n)}`}>
            ${n / total > 0.16 ? html`<span>${name}</span>` : null}
          </div>`,
      )}
    </div>
    <dl class="parts-legend">
      ${all
        .filter(({ key, n }) => n > 0 || key === 'certify')
        .map(
          ({ key, name, n, about }) =>
            html`<div key=${key}>
            <dt><i class=${`part-${key}`} aria-hidden="true"></i>${name}</dt>
            <dd class="number">${count(n)}</dd>
            <dd class="muted parts-about">${about}</dd>
          </div>`,
        )}
    </dl>
  </div>`;
}

/** What can be promised, class by class. @param {{support: Support[], confidence: number}} props */
export function SupportList({ support, confidence }) {
  if (support.length === 0) return null;
  return html`<div class="support">
    <p class="small">At a confidence of ${percent(confidence, 0)} the certify part supports</p>
    <ul class="small">
      ${support.map(
        ({ label, n, least }) =>
          html`<li key=${labelText(label)}>
            limits of <strong>${least.toFixed(2)}%</strong> and more on mistakes with
            <strong> ${labelText(label)}</strong> <span class="muted">(${plural(n, 'sample')})</span>
          </li>`,
      )}
    </ul>
  </div>`;
}
