// The reply to a request: met or not, the changed cells, the strategy, and what to do next.
// @ts-check

import { Icon, Notice, Tag, count, html, labelText, plural, predictedText, seconds, signed } from './kit.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Change} Change */
/** @typedef {import('./types.js').Job} Job */
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
        <span class="changes-cell">${labelText(label)} ${predictedText(predicted)}</span>
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
    reply.candidates > 0 ? `${plural(reply.candidates, 'candidate')} compared` : null,
    reply.cancelled ? 'stopped before all strategies were tried' : null,
  ];
  return html`<p class="muted small">${facts.filter(Boolean).join(' · ')}</p>`;
}

/** @param {{reply: Reply, act: Act, live: boolean}} props */
function NotMet({ reply, act, live }) {
  const short = Math.max(1, Math.ceil(reply.shortfall));
  const { instead } = reply;
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
