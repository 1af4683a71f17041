// A running training: a bar for each member and for all, the matrix of the finished members, and buttons to use
// these or to cancel; or its error, with a retry.
// @ts-check

import { post } from './api.js';
import { Bar, Notice, SmallMatrix, Spinner, count, html, percent, plural, sentence, useState } from './kit.js';
import { PartsBar, SupportList } from './start_parts.js';
import { totalsOf } from './matrix_counts.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').MemberProgress} MemberProgress */
/** @typedef {import('./types.js').Progress} JobProgress */

const STATES = { done: 'done', running: 'training', waiting: 'next' };

/** @param {MemberProgress} props */
const Line = ({ name, done, total, state }) =>
  html`<li class=${`training-line training-${state}`}>
    <span class="training-name">${name}</span>
    <${Bar} done=${done} total=${total} label=${name} />
    <span class="muted small">${STATES[state]}</span>
  </li>`;

/** The matrix of the members that are finished. @param {{progress: JobProgress}} props */
function Provisional({ progress }) {
  const { provisional, members } = progress;
  if (!provisional || !members) return null;
  const totals = totalsOf(provisional.confusion);
  return html`<section class="training-matrix" aria-labelledby="provisional-head">
    <h3 id="provisional-head">
      Provisional: ${count(provisional.members)} of ${plural(members.length, 'member')}
    </h3>
    <p role="status">
      <strong>${plural(totals.errors, 'error')}</strong> in ${plural(totals.n, 'row')} of the tuning set: an accuracy
      of <strong>${percent(totals.correct / totals.n, 1)}</strong>.
    </p>
    <${SmallMatrix} matrix=${provisional.confusion} caption="The confusion matrix of the finished members" />
  </section>`;
}

/** @param {{job: Job}} props */
function Progress({ job }) {
  const progress = job.progress;
  const head =
    job.state === 'waiting'
      ? job.ahead > 0
        ? `Waiting: ${plural(job.ahead, 'job')} ahead`
        : 'Waiting for its turn'
      : progress?.text || 'Training';
  const fraction = progress && progress.total > 0 ? progress.done / progress.total : 0;
  return html`<div class="stack">
    <div class="row">
      <strong class="grow">${head}</strong>
      <span class="muted">${percent(fraction, 0)}</span>
    </div>
    <${Bar} done=${fraction} total=${1} label="Whole training" />
    ${
      progress?.members?.length
        ? html`<ul class="training-lines">
          ${progress.members.map((member) => html`<${Line} key=${member.name} ...${member} />`)}
        </ul>`
        : null
    }
    ${progress ? html`<${Provisional} progress=${progress} />` : null}
  </div>`;
}

/**
 * The buttons that end a training: with the finished members, or without a result.
 * @param {{job: Job | null, pending: boolean, send: (path: string) => Promise<boolean>}} props
 */
function Ends({ job, pending, send }) {
  const [asked, setAsked] = useState(false);
  const members = job?.progress?.members ?? [];
  const done = members.filter(({ state }) => state === 'done').length;
  const path = job ? `/api/jobs/${encodeURIComponent(job.id)}` : '';
  return html`<div class="row">
    ${
      done > 0 && done < members.length
        ? html`<button
          type="button"
          class="button"
          disabled=${pending || asked}
          onClick=${async () => setAsked(await send(`${path}/enough`))}
        >
          ${asked ? 'Finishing with these members' : done === 1 ? 'Use this member' : `Use these ${plural(done, 'member')}`}
        </button>`
        : null
    }
    <button type="button" class="button" disabled=${pending || !job} onClick=${() => send(`${path}/cancel`)}>
      Cancel the training
    </button>
  </div>`;
}

/**
 * A dialog that is not trained yet.
 * @param {{dialog: Dialog, job: Job | null, refresh: () => Promise<void>}} props
 */
export function Training({ dialog, job, refresh }) {
  const [problem, setProblem] = useState('');
  const [pending, setPending] = useState(false);
  const failed = dialog.state === 'failed';
  /** @param {string} path */
  const send = async (path) => {
    let sent = true;
    setPending(true);
    setProblem('');
    try {
      await post(path);
      await refresh();
    } catch (error) {
      setProblem(sentence(error));
      sent = false;
    }
    setPending(false);
    return sent;
  };
  const again = html`<button
    type="button"
    class="button-primary"
    disabled=${pending}
    onClick=${() => send(`/api/dialogs/${encodeURIComponent(dialog.id)}/retry`)}
  >
    Train again
  </button>`;
  return html`<div class="training">
    <section class="card stack" aria-labelledby="training-head">
      <h2 id="training-head">${failed ? 'Not trained' : `Training the ${dialog.kind}`}</h2>
      ${
        failed
          ? html`<${Notice} kind="bad" action=${again}>${dialog.error ?? 'The training failed.'}<//>`
          : html`<p class="muted">
              You can leave or close this page: the training continues, and this page shows it again.
            </p>
            ${job ? html`<${Progress} job=${job} />` : html`<${Spinner} label="Starting" />`}
            <${Ends} job=${job} pending=${pending} send=${send} />`
      }
      ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    </section>
    ${
      dialog.parts && !failed
        ? html`<section class="card stack" aria-label="How the rows are split">
          <h2>How the rows are split</h2>
          <${PartsBar} parts=${dialog.parts} kind=${dialog.kind} />
          <${SupportList} support=${dialog.support} confidence=${dialog.confidence} />
        </section>`
        : null
    }
  </div>`;
}
