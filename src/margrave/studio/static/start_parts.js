// The split of a table into parts as a bar, and the limits that the certification set supports.
// @ts-check

import { count, html, labelText, nameClass, percent, plural } from './kit.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Parts} Parts */
/** @typedef {import('./types.js').Support} Support */

/** Names and descriptions of the training and the tuning set. @type {Record<Dialog["kind"], [string, string][]>} */
const LEARN = {
  committee: [
    ['Training only', 'The members are trained on these rows.'],
    [
      'Training and tuning',
      'The members are trained on these rows too; the matrix counts their out-of-fold predictions.',
    ],
  ],
  program: [
    ['Training', 'The program is trained on these rows.'],
    ['Tuning', 'The matrix counts these rows; the program is not trained on them.'],
  ],
};

/**
 * The parts of the bar. The tuning set of a committee has out-of-fold predictions, so it is a subset
 * of the training set.
 * @param {Parts} parts @param {Dialog["kind"]} kind
 */
function pieces(parts, kind) {
  const [[train, aboutTrain], [tune, aboutTune]] = LEARN[kind];
  const only = kind === 'committee' ? parts.train - parts.tune : parts.train;
  const aboutCertify =
    parts.certify > 0
      ? 'No step sees these rows; they certify the model that you accept.'
      : 'No rows are set aside, so nothing can be guaranteed.';
  return [
    { key: 'train', name: train, n: only, about: aboutTrain },
    { key: 'tune', name: tune, n: parts.tune, about: aboutTune },
    { key: 'certify', name: 'Certification', n: parts.certify, about: aboutCertify },
    { key: 'unused', name: 'Unused', n: parts.unused, about: 'These rows are left out: they belong to groups in the certification set, or are copies of its rows.' },
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
            ${n / total > 0.12 ? percent(n / total, 0) : null}
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

/** The smallest limit that can be guaranteed for each class. @param {{support: Support[], confidence: number}} props */
export function SupportList({ support, confidence }) {
  if (support.length === 0) return null;
  return html`<div class="support">
    <p class="small">The smallest limits that can be guaranteed, at a confidence of ${percent(confidence, 0)}:</p>
    <ul class="small">
      ${support.map(
        ({ label, n, least }) =>
          html`<li key=${labelText(label)}>
            <strong>${least.toFixed(2)}%</strong> errors on <strong>${nameClass(label)}</strong>
            <span class="muted"> (${plural(n, 'row')} in the certification set)</span>
          </li>`,
      )}
    </ul>
  </div>`;
}
