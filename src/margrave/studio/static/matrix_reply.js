// The reply to a request: met or not, the changed cells, the strategy, and what to do next.
// @ts-check

import { Icon, Notice, Tag, count, html, nameClass, plural, predictedText, seconds, signed } from './kit.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Alternative} Alternative */
/** @typedef {import('./types.js').Change} Change */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').Matrix} Matrix */
/** @typedef {import('./types.js').Reply} Reply */

/** @type {Record<string, string>} */
const BY = {
  move: 'moved the threshold',
  reject: 'rejected uncertain rows',
  reweight: 'reweighted the members',
  retune: 'tuned the learners',
  nodes: 'tuned a node of the program',
  grow: 'grew the program',
};

/** "moved the threshold", or the name of the strategy. @param {string} strategy */
const strategyText = (strategy) => BY[strategy] ?? strategy;

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

/** The improved and the worsened cells. @param {{changes: Change[]}} props */
function Balance({ changes }) {
  if (changes.length === 0) return html`<p class="small muted">No cell has changed.</p>`;
  const gains = changes.filter(({ before, after }) => after < before);
  const costs = changes.filter(({ before, after }) => after > before);
  return html`${
    gains.length
      ? html`<div><h3 class="reply-head-small">Improved</h3><${Changes} changes=${gains} /></div>`
      : null
  }
    ${
      costs.length
        ? html`<div><h3 class="reply-head-small">Cost in other cells</h3><${Changes} changes=${costs} /></div>`
        : html`<p class="small muted">There is no cost in other cells.</p>`
    }`;
}

/** @param {{reply: Reply}} props */
function Facts({ reply }) {
  const facts = [
    strategyText(reply.strategy),
    seconds(reply.seconds),
    reply.n_candidates > 0 ? `${plural(reply.n_candidates, 'candidate')} compared` : null,
    reply.cancelled ? 'stopped before all strategies were tried' : null,
  ];
  return html`<p class="muted small">${facts.filter(Boolean).join(' · ')}</p>`;
}

/** "61 errors: 10 fp, 51 fn", and the rejected rows if there are any. @param {Matrix} matrix */
function errorsText({ classes, positive, counts }) {
  const k = classes.length;
  const side = classes.indexOf(positive ?? '');
  /** @param {(row: number, column: number) => boolean} counted */
  const sum = (counted) => counts.flatMap((cells, row) => cells.filter((_, at) => counted(row, at))).reduce((a, b) => a + b, 0);
  const errors = plural(sum((row, at) => at < k && at !== row), 'error');
  const fp = sum((row, at) => at === side && row !== side);
  const fn = sum((row, at) => row === side && at < k && at !== side);
  const rejected = sum((_, at) => at === k);
  const kinds = [...(side < 0 ? [] : [`${count(fp)} fp`, `${count(fn)} fn`]), ...(rejected ? [`${count(rejected)} rejected`] : [])];
  return kinds.length ? `${errors}: ${kinds.join(', ')}` : errors;
}

/** What an alternative is called; "nearest to" if even the limit with priority is missed. @param {Alternative} one */
function alternativeName({ kept, misses }) {
  if (kept === null) return 'The middle';
  return `${misses.some(({ bound }) => bound === kept) ? 'Nearest to' : 'Keep'} ${kept}`;
}

/** Alternatives, each with a button that requests it. @param {{reply: Reply, act: Act}} props */
function Alternatives({ reply, act }) {
  return html`<div>
    <h3 class="reply-head-small" id="alternatives-head">Alternatives</h3>
    <ul class="alternatives" aria-labelledby="alternatives-head">
      ${reply.alternatives.map((one) => {
        const { preference, misses, confusion } = one;
        const name = alternativeName(one);
        return html`<li key=${name}>
          <div class="alternative-text">
            <strong>${name}</strong>
            <div>
              misses${' '}
              ${misses.map(
                ({ bound, samples }, place) =>
                  html`${place ? ' and ' : ''}<code>${bound}</code> by ${plural(Math.ceil(samples), 'row')}`,
              )}
            </div>
            <div class="small">${errorsText(confusion)}</div>
          </div>
          ${
            preference
              ? html`<button
                  type="button"
                  class="button button-small"
                  disabled=${act.busy}
                  aria-label=${`Take this: ${name}`}
                  title=${preference}
                  onClick=${() => act.prefer([preference], { keep: false })}
                >
                  Take this
                </button>`
              : null
          }
        </li>`;
      })}
    </ul>
  </div>`;
}

/** @param {{reply: Reply, act: Act, live: boolean}} props */
function NotMet({ reply, act, live }) {
  const short = Math.max(1, Math.ceil(reply.shortfall));
  const instead = reply.alternatives.length ? null : reply.instead;
  // From this step, which meets it: from its parent another search might give another result.
  const take = () => instead && act.prefer([instead], { keep: false });
  const buttons = live
    ? null
    : html`${
        instead
          ? html`<button type="button" class="button-primary" disabled=${act.busy} onClick=${take}>
              Take this instead
            </button>`
          : null
      }
        <button type="button" class="button" disabled=${act.busy} onClick=${act.undo}>Go back</button>`;
  const title = 'No strategy meets these limits. The matrix shows the nearest result.';
  return html`<${Notice} kind="warn" title=${title} action=${buttons}>
    It is ${plural(short, 'row')} short over all limits.${' '}
    ${reply.binding ? html`<code>${reply.binding}</code> is the limiting constraint.` : null}
    ${instead ? html`<br />Reachable: <code>${instead}</code>` : null}
    ${reply.alternatives.length ? html`<${Alternatives} reply=${reply} act=${act} />` : null}
  <//>`;
}

/**
 * @param {{reply: Reply, live: boolean, job: Job | null, act: Act, stop: () => void}} props
 *   `live`: a job is running, and a better reply may follow
 */
export function ReplyBox({ reply, live, job, act, stop }) {
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
      <code class="reply-preference">${reply.preference}</code>
    </div>
    ${reply.warnings.length ? html`<${Notice} kind="warn">${reply.warnings.map((text) => html`<p key=${text}>${text}</p>`)}<//>` : null}
    ${reply.met ? null : html`<${NotMet} reply=${reply} act=${act} live=${live} />`}
    ${reply.met && reply.already ? html`<p class="small">The limits were already met.</p>` : null}
    ${reply.note ? html`<p class="small">${reply.note}</p>` : null}
    <${Balance} changes=${reply.changes} />
    <${Facts} reply=${reply} />
  </section>`;
}

/** @param {Job | null} job @param {Reply | null} reply */
export function liveText(job, reply) {
  if (job?.state === 'waiting')
    return job.ahead > 0 ? `Waiting: ${plural(job.ahead, 'job')} ahead` : 'Waiting for its turn';
  if (reply) return 'First reply; a better one may follow.';
  return job?.progress?.text || 'Searching';
}
