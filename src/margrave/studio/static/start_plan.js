// A new dialog, the guarantee: the limit to certify, its confidence, and the split that is planned for it.
// @ts-check

import { Field, Notice, Spinner, count, html, labelText, nameClass, percent, plural } from './kit.js';

/** @typedef {import('./start_steer.js').Change} Change */
/** @typedef {import('./start_steer.js').Choices} Choices */
/** @typedef {import('./types.js').Plan} Plan */
/** @typedef {import('./types.js').SplitOption} SplitOption */
/** @typedef {import('./types.js').SplitPlan} SplitPlan */

/**
 * The planned guarantee; `loading` while the plan for the current choices is computed.
 * @param {{choices: Choices, change: Change, plan: Plan | null, loading: boolean}} props
 */
export function Guarantee({ choices, change, plan, loading }) {
  const planned = choices.guarantee ? (plan?.planned ?? null) : null;
  return html`<section class="card stack" aria-labelledby="guarantee-head">
    <h2 id="guarantee-head">Guarantee</h2>
    <p class="muted small">
      If you know which limit you want to certify, state it here. The studio then plans how many rows of each class to
      set aside for it. You can also leave it empty and choose a limit after the training.
    </p>
    <div class="more-fields">
      <${Field}
        id="guarantee"
        label="Planned guarantee"
        hint=${html`Such as <code>${'fp <= 2%'}</code> or <code>${'fn <= 5%'}</code>.`}
      >
        <input
          id="guarantee"
          type="text"
          class="mono"
          value=${choices.guarantee ?? ''}
          onInput=${(/** @type {any} */ event) => change({ guarantee: event.target.value || null })}
        />
      <//>
      <${Field}
        id="confidence"
        label="Confidence of the guarantee"
        hint="How sure the guarantee is. A higher confidence needs more rows for the same limit."
      >
        <select
          id="confidence"
          value=${String(choices.confidence)}
          onChange=${(/** @type {any} */ event) => change({ confidence: Number(event.target.value) })}
        >
          ${['0.9', '0.95', '0.99'].map((value) => html`<option value=${value}>${percent(Number(value), 0)}</option>`)}
        </select>
      <//>
    </div>
    ${choices.guarantee && loading ? html`<${Spinner} label="Planning the split" />` : null}
    ${planned && plan && !loading ? html`<${Planned} planned=${planned} plan=${plan} />` : null}
    ${choices.guarantee && plan && !planned && !loading ? html`<p class="small muted">${whyUnplanned(choices)}</p>` : null}
  </section>`;
}

/** Why no split is planned for a guarantee. @param {Choices} choices */
function whyUnplanned({ certify }) {
  if (certify === null) return 'No rows are set aside, so nothing can be guaranteed.';
  if (certify !== 'auto') return 'You chose the size of the certification set, so it is not planned.';
  return 'The split is not planned for these limits; the certification set has the usual size.';
}

/** The planned split. @param {{planned: SplitPlan, plan: Plan}} props */
function Planned({ planned, plan }) {
  const { chosen, options } = planned;
  const classes = Object.keys(chosen.certify_by_class);
  const limited = classes.filter((label) => label in chosen.allowed_errors);
  const scarce = limited.filter((label) => chosen.allowed_errors[label] < 0);
  if (scarce.length) return html`<${TooFew} scarce=${scarce} plan=${plan} further=${planned.further} />`;
  if (chosen.recall === 0) {
    return html`<${Notice} kind="warn" title="These limits can hardly be met together">
      No size of the certification set is expected to certify all of them. Request a less strict limit, or one at a
      time.
    <//>`;
  }
  const others = limited.length ? classes.filter((label) => !limited.includes(label)) : [];
  const recall = others.length === 1 ? `recall of ${nameClass(others[0])}` : 'mean recall of the classes';
  return html`<div class="stack planned">
    <dl class="planned-facts">
      ${classes.map(
        (label) => html`<div key=${label}>
          <dt>Set aside of ${nameClass(label)}</dt>
          <dd>
            ${plural(chosen.certify_by_class[label], 'row')}<span class="muted">${
              label in chosen.allowed_errors
                ? `, of which at most ${count(chosen.allowed_errors[label])} may be errors`
                : others.includes(label)
                  ? ', to report its rate'
                  : null
            }</span>
          </dd>
        </div>`,
      )}
      <div><dt>Expected ${recall}</dt><dd><strong>${percent(chosen.recall)}</strong></dd></div>
      <div>
        <dt>Cost of the guarantee</dt>
        <dd>
          ${(100 * (planned.recall_without - chosen.recall)).toFixed(1)} points<span class="muted"
            >, since ${percent(planned.recall_without)} are expected without one</span
          >
        </dd>
      </div>
      ${planned.further.map(
        (option) => html`<div key=${moreRows(option)}>
          <dt>With ${moreRows(option)}</dt>
          <dd>
            ${percent(option.recall)}<span class="muted"
              >${limited.length ? `; allowed errors: ${allowedErrors(option)}` : null}</span
            >
          </dd>
        </div>`,
      )}
    </dl>
    <p class="small muted">
      Estimated with a logistic regression on the rows that are not set aside. A committee often has a higher recall.
    </p>
    ${
      planned.by_class
        ? html`<p class="small muted">
          The sets then have other proportions of the classes than the table, so only rates within a class, such as fp and
          fn, can be limited later.
        </p>`
        : null
    }
    ${options.length > 1 ? html`<${Options} planned=${planned} classes=${classes} limited=${limited} />` : null}
  </div>`;
}

/** The allowed errors of each class with a limit. @param {SplitOption} option */
function allowedErrors({ allowed_errors }) {
  return Object.values(allowed_errors).map(count).join(' and ');
}

/** What the table lacks for an option. @param {SplitOption} option */
function moreRows({ more_rows }) {
  return Object.entries(more_rows)
    .map(([label, n]) => `${count(n)} more rows of ${nameClass(label)}`)
    .join(' and ');
}

/** The sizes that were compared. @param {{planned: SplitPlan, classes: string[], limited: string[]}} props */
function Options({ planned, classes, limited }) {
  const chosen = JSON.stringify(planned.chosen);
  return html`<details>
    <summary>Compare ${plural(planned.options.length, 'size')} of the certification set</summary>
    <div class="planned-options" tabindex="0" role="group" aria-label="Sizes of the certification set">
      <table class="table table-tight">
        <thead>
          <tr>
            ${classes.map((label) => html`<th scope="col" class="number">Rows of ${nameClass(label)}</th>`)}
            ${limited.length ? html`<th scope="col" class="number">Allowed errors</th>` : null}
            <th scope="col" class="number">Expected recall</th>
          </tr>
        </thead>
        <tbody>
          ${planned.options.map((option) => {
            const here = JSON.stringify(option) === chosen;
            return html`<tr class=${here ? 'planned-chosen' : ''} aria-current=${here ? 'true' : undefined}>
              ${classes.map((label) => html`<td class="number">${count(option.certify_by_class[label])}</td>`)}
              ${limited.length ? html`<td class="number">${allowedErrors(option)}</td>` : null}
              <td class="number">${percent(option.recall)}${here ? ' (chosen)' : ''}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  </details>`;
}

/** What is possible if a class has too few rows. @param {{scarce: string[], plan: Plan, further: SplitOption[]}} props */
function TooFew({ scarce, plan, further }) {
  const names = scarce.map((label) => nameClass(label)).join(' and ');
  const possible = plan.support.filter(({ label }) => scarce.includes(labelText(label)));
  return html`<${Notice} kind="warn" title=${`There are too few rows of ${names} for this guarantee`}>
    It cannot be certified on this table.
    ${possible.map(
      ({ label, n, least }) =>
        ` With ${plural(n, 'row')} of ${nameClass(label)} set aside, the smallest limit on its errors is ${least.toFixed(2)}%.`,
    )}
    ${further.map((option) => ` With ${moreRows(option)}, a recall of ${percent(option.recall)} is expected.`)}
    ${' '}State a less strict limit, choose a lower confidence, or use a table with more rows.
  <//>`;
}
