// The reply to a request: met or not, the changed cells, the strategy, and what to do next.
// @ts-check

import { get, query } from './api.js';
import { Icon, Notice, Tag, count, html, nameClass, plural, predictedText, seconds, signed, useLoad } from './kit.js';
import { goalText, limitsText } from './dialog_state.js';
import { STRATEGIES } from './matrix_ask.js';
import { errorsOf, totalsOf } from './matrix_counts.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Alternative} Alternative */
/** @typedef {import('./types.js').Change} Change */
/** @typedef {import('./types.js').Comparison} Comparison */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Reply} Reply */
/** @typedef {import('./types.js').StepPair} StepPair */

/** @type {Record<string, string>} */
const BY = {
  move: 'moved the threshold',
  reject: 'rejected uncertain rows',
  retune: 'tuned the learners',
  nodes: 'tuned a node of the program',
  grow: 'grew the program',
};

/** The cells that have changed. @param {{changes: Change[]}} props */
export function Changes({ changes }) {
  return html`<ul class="changes">
    ${changes.map(({ true: label, predicted, before, after }) => {
      const tone = predicted === null ? 'muted' : after < before ? 'good' : 'bad';
      return html`<li key=${`${label} ${predicted}`}>
        <span class="changes-cell">${nameClass(label)} ${predictedText(predicted)}</span>
        <span class="number">${count(before)} → ${count(after)}</span>
        <span class=${`number changes-difference ${tone}`}>${signed(after - before)}</span>
      </li>`;
    })}
  </ul>`;
}

/** The cells with fewer rows, and those with more. @param {{changes: Change[]}} props */
function Balance({ changes }) {
  if (changes.length === 0) return html`<p class="small muted">No cell has changed.</p>`;
  const gains = changes.filter(({ before, after }) => after < before);
  const costs = changes.filter(({ before, after }) => after > before);
  return html`<div class="balance">
    ${gains.length ? html`<div><h3 class="reply-head-small">Gain</h3><${Changes} changes=${gains} /></div>` : null}
    ${
      costs.length
        ? html`<div><h3 class="reply-head-small">Cost</h3><${Changes} changes=${costs} /></div>`
        : html`<p class="small muted">There is no cost in other cells.</p>`
    }
  </div>`;
}

/** @param {{reply: Reply}} props */
function Facts({ reply }) {
  const facts = [
    BY[reply.strategy] ?? reply.strategy,
    seconds(reply.seconds),
    reply.n_candidates > 0 ? `${plural(reply.n_candidates, 'candidate')} compared` : null,
    reply.cancelled ? 'stopped before all strategies were tried' : null,
  ];
  return html`<p class="muted small grow">${facts.filter(Boolean).join(' · ')}</p>`;
}

/** The errors of a matrix by name, and the rejected rows if there are any. @param {Matrix} matrix */
function countsOf(matrix) {
  const { errors, rejected } = totalsOf(matrix);
  /** @type {[string, number][]} */
  const kinds = [['Total errors', errors]];
  if (matrix.positive !== null) {
    const { fp, fn } = errorsOf(matrix, matrix.positive);
    kinds.unshift(['False positives', fp], ['False negatives', fn]);
  }
  if (rejected) kinds.push(['Rejected', rejected]);
  return kinds;
}

/** What an alternative is called; "nearest to" if even the limit with priority is missed. @param {Alternative} one */
function alternativeName({ kept, misses }) {
  if (kept === null) return 'The middle';
  return `${misses.some(({ bound }) => bound === kept) ? 'Nearest to' : 'Keep'} ${kept}`;
}

/** An alternative, with a button that requests it. @param {{one: Alternative, shown: boolean, act: Act}} props */
function AlternativeCard({ one, shown, act }) {
  const { preference, misses, confusion } = one;
  const name = alternativeName(one);
  return html`<li class="alternative">
    <div>
      <h4>${name}</h4>
      <p class="small">
        Misses${' '}
        ${misses.map(
          ({ bound, samples }, place) =>
            html`${place ? ' and ' : ''}<code>${bound}</code> by ${plural(Math.ceil(samples), 'row')}`,
        )}.
      </p>
    </div>
    <dl>
      ${countsOf(confusion).map(([kind, n]) => html`<div><dt>${kind}</dt><dd class="number">${count(n)}</dd></div>`)}
    </dl>
    ${shown ? html`<p class="small">The matrix shows this result.</p>` : null}
    ${
      preference
        ? html`<button
            type="button"
            class="button button-small"
            disabled=${act.busy}
            aria-label=${`Use this: ${name}`}
            title=${`Request ${preference}`}
            onClick=${() => act.prefer([preference], { keep: false })}
          >
            Use this
          </button>`
        : null
    }
  </li>`;
}

/** Seconds of a search with all strategies: as measured in this dialog, or guessed by its rows. @param {Dialog} dialog */
function harderSeconds({ steps, n }) {
  const measured = steps.filter(({ strategies, cancelled }) => strategies?.includes('retune') && !cancelled);
  return measured.length ? measured[measured.length - 1].seconds : n / 500;
}

/** @type {string[]} */
const ALL = STRATEGIES.map(([name]) => name);

/** @param {Reply} reply */
const triedAll = ({ strategies }) => ALL.every((name) => strategies?.includes(name));

/**
 * A button that repeats a request with all strategies, unless they were all tried.
 * @param {{dialog: Dialog, reply: Reply, act: Act}} props
 */
function SearchHarder({ dialog, reply, act }) {
  const { preference, parent } = reply;
  if (preference === null || triedAll(reply)) return null;
  const guess = Math.max(1, Math.round(harderSeconds(dialog)));
  const about = guess < 60 ? `${guess} s` : `${Math.round(guess / 60)} min`;
  return html`<button
    type="button"
    class="button"
    disabled=${act.busy}
    title="Try all strategies: also tune the learners"
    onClick=${() => act.prefer([preference], { keep: false, from: parent, strategies: ALL })}
  >
    Search harder (about ${about})
  </button>`;
}

/** @param {{dialog: Dialog, reply: Reply, act: Act}} props */
function NotMet({ dialog, reply, act }) {
  const short = Math.max(1, Math.ceil(reply.shortfall));
  const { alternatives } = reply;
  const instead = alternatives.length ? null : reply.instead;
  // From this step, which meets it: from its parent another search might give another result.
  const take = () => instead && act.prefer([instead], { keep: false });
  const n = reply.sentences.length;
  const limits = n === 1 ? 'this limit' : n === 2 ? 'both limits' : `all ${count(n)} limits`;
  const buttons = html`${
      instead
        ? html`<button type="button" class="button-primary" disabled=${act.busy} onClick=${take}>Use this</button>`
        : null
    }
    <${SearchHarder} dialog=${dialog} reply=${reply} act=${act} />
    <button type="button" class="button" disabled=${act.busy} onClick=${act.undo}>Go back</button>`;
  return html`<${Notice} kind="warn" title=${`No model found meets ${limits}. Showing the closest.`} action=${buttons}>
    It misses the limits by ${plural(short, 'row')}.${' '}
    ${triedAll(reply) && !reply.cancelled ? 'All strategies were tried: none came closer. ' : null}
    ${reply.binding ? html`<code>${reply.binding}</code> is the limiting constraint.` : null}
    ${instead ? html`<br />Reachable: <code>${instead}</code>` : null}
    ${
      alternatives.length
        ? html`<h3 class="reply-head-small" id="alternatives-head">Alternatives</h3>
          <ul class="alternatives" aria-labelledby="alternatives-head">
            ${alternatives.map(
              (one) =>
                html`<${AlternativeCard}
                  key=${alternativeName(one)}
                  one=${one}
                  shown=${String(one.confusion.counts) === String(reply.after.counts)}
                  act=${act}
                />`,
            )}
          </ul>`
        : null
    }
  <//>`;
}

/** A button that shows the rows that a step has changed. @param {{dialog: Dialog, pair: StepPair, act: Act}} props */
function ChangedButton({ dialog, pair, act }) {
  const path = `/api/dialogs/${encodeURIComponent(dialog.id)}/compare`;
  const { data, loading } = useLoad((signal) => get(query(path, pair), signal), [path, pair.first, pair.second]);
  const n = /** @type {Comparison | null} */ (data)?.n_changed;
  if (loading || !n) return null;
  return html`<button type="button" class="button button-small" onClick=${() => act.showChanges(pair)}>
    Show the ${plural(n, 'row')} that changed
  </button>`;
}

/**
 * @param {{dialog: Dialog, reply: Reply, live: boolean, job: Job | null, act: Act, stop: () => void}} props
 *   `live`: a job is running, and a better reply may follow
 */
export function ReplyBox({ dialog, reply, live, job, act, stop }) {
  return html`<section class="reply" aria-label="Reply">
    ${
      live
        ? html`<div class="reply-live">
          <span class="spinner-ring" aria-hidden="true"></span>
          <span class="grow">${liveText(job, reply)}</span>
          <button type="button" class="button button-small" onClick=${stop}>Stop</button>
        </div>`
        : null
    }
    <div class="row reply-head">
      ${reply.met ? html`<${Tag} kind="good"><${Icon} name="check" />met<//>` : html`<${Tag} kind="warn">not met<//>`}
      <code class="reply-preference">${limitsText(reply)}</code>
      ${reply.goal ? html`<span class="muted small">then ${goalText(reply)}</span>` : null}
    </div>
    ${reply.warnings.map((text) => html`<p key=${text} class="reply-warning small">${text}</p>`)}
    ${reply.met ? null : live ? html`<p class="small">Not met yet: the search continues.</p>` : html`<${NotMet} dialog=${dialog} reply=${reply} act=${act} />`}
    ${reply.met && reply.already && reply.changes.length === 0 ? html`<p class="small">The limits were already met.</p>` : null}
    ${reply.note ? html`<p class="small">${reply.note}</p>` : null}
    <${Balance} changes=${reply.changes} />
    <div class="row">
      <${Facts} reply=${reply} />
      ${
        reply.number !== null && reply.parent !== null
          ? html`<${ChangedButton} dialog=${dialog} pair=${{ first: reply.parent, second: reply.number }} act=${act} />`
          : null
      }
    </div>
  </section>`;
}

/** @param {Job | null} job @param {Reply | null} reply */
export function liveText(job, reply) {
  if (job?.state === 'waiting')
    return job.ahead > 0 ? `Waiting: ${plural(job.ahead, 'job')} ahead` : 'Waiting for its turn';
  if (reply) return 'First reply; a better one may follow.';
  return job?.progress?.text || 'Searching';
}
