// What became of a request: met or not, what it costs elsewhere, by which strategy, and what to do now.
// @ts-check

import { Icon, Notice, Tag, answerText, count, html, labelText, plural, seconds, signed } from './kit.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Change} Change */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').Reply} Reply */

/** @type {Record<string, string>} */
const BY = {
  move: 'moved the decision',
  reject: 'gave no answer to close calls',
  reweight: 'weighed the members anew',
  select: 'chose a member for each region',
  retune: 'tuned the learners',
  nodes: 'tuned a node of the program',
  grow: 'grew the program',
};

/** "moved the decision", or the strategy's own name. @param {string} strategy */
export const wayText = (strategy) => BY[strategy] ?? strategy;

/** The cells that are not as before. @param {{changes: Change[]}} props */
export function Changes({ changes }) {
  return html`<ul class="changes">
    ${changes.map(({ true: label, answer, before, after }) => {
      const tone = answer === null ? 'muted' : after < before ? 'good' : 'bad';
      return html`<li key=${`${label} ${answer}`}>
        <span class="changes-cell">${labelText(label)} ${answerText(answer)}</span>
        <span class="number">${count(before)} → ${count(after)}</span>
        <span class=${`number changes-difference ${tone}`}>${signed(after - before)}</span>
      </li>`;
    })}
  </ul>`;
}

/** What is gained, and what it costs elsewhere. @param {{changes: Change[]}} props */
function Balance({ changes }) {
  if (changes.length === 0) return html`<p class="small muted">No cell changes.</p>`;
  const gains = changes.filter(({ before, after }) => after < before);
  const costs = changes.filter(({ before, after }) => after > before);
  return html`${
    gains.length
      ? html`<div><h3 class="reply-head-small">What it brings</h3><${Changes} changes=${gains} /></div>`
      : null
  }
    ${
      costs.length
        ? html`<div><h3 class="reply-head-small">What it costs elsewhere</h3><${Changes} changes=${costs} /></div>`
        : html`<p class="small muted">It costs nothing elsewhere.</p>`
    }`;
}

/** @param {{reply: Reply}} props */
function Facts({ reply }) {
  const facts = [
    wayText(reply.strategy),
    seconds(reply.seconds),
    reply.options > 0 ? `${plural(reply.options, 'option')} compared` : null,
    reply.cancelled ? 'stopped before all was tried' : null,
  ];
  return html`<p class="muted small">${facts.filter(Boolean).join(' · ')}</p>`;
}

/** @param {{reply: Reply, act: Act, live: boolean}} props */
function NotMet({ reply, act, live }) {
  const short = Math.max(1, Math.ceil(reply.shortfall));
  const { instead } = reply;
  // From this step, which is within it: from its parent another search might end elsewhere.
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
  const title = 'Not found by the strategies that were tried. The matrix shows the nearest that was.';
  return html`<${Notice} kind="warn" title=${title} action=${buttons}>
    ${plural(short, 'sample')} too many in wrong places, over all that was asked.${' '}
    ${reply.binding ? html`<code>${reply.binding}</code> binds.` : null}
    ${instead ? html`<br />Within reach: <code>${instead}</code>` : null}
  <//>`;
}

/**
 * @param {{reply: Reply, live: boolean, job: Job | null, act: Act, stop: () => void}} props
 *   `live`: a job is at work, and a better reply may come
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
      <code class="reply-asked">${reply.asked}</code>
    </div>
    ${reply.met ? null : html`<${NotMet} reply=${reply} act=${act} live=${live} />`}
    ${reply.met && reply.already ? html`<p class="small">It was met before, and what it allows is spent now.</p>` : null}
    ${reply.note ? html`<p class="small">${reply.note}</p>` : null}
    <${Balance} changes=${reply.changes} />
    <${Facts} reply=${reply} />
  </section>`;
}

/** @param {Job | null} job @param {Reply | null} reply */
export function liveText(job, reply) {
  if (job?.state === 'waiting')
    return job.ahead > 0 ? `Waiting: ${plural(job.ahead, 'job')} ahead` : 'Waiting for its turn';
  if (reply) return 'A first answer; a better one may come.';
  return job?.progress?.text || 'Looking for an answer';
}
