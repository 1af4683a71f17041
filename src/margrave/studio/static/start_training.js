// A running training: a bar for each member and for all, with a button to cancel; or its error, with a retry.
// @ts-check

import { post } from './api.js';
import { Bar, Notice, Spinner, count, html, percent, plural, sentence, useState } from './kit.js';
import { PartsBar, SupportList } from './start_parts.js';

/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Job} Job */

/** @param {{name: string, done: number, total: number}} props */
function Line({ name, done, total }) {
  const word = total > 0 && done >= total ? 'done' : done > 0 ? `${count(done)} of ${count(total)}` : 'waiting';
  return html`<li class="training-line">
    <span class="training-name">${name}</span>
    <${Bar} done=${done} total=${total} label=${name} />
    <span class="muted small number">${word}</span>
  </li>`;
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
    setPending(true);
    setProblem('');
    try {
      await post(path);
      await refresh();
    } catch (error) {
      setProblem(sentence(error));
    }
    setPending(false);
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
            <div>
              <button
                type="button"
                class="button"
                disabled=${pending || !job}
                onClick=${() => job && send(`/api/jobs/${encodeURIComponent(job.id)}/cancel`)}
              >
                Cancel the training
              </button>
            </div>`
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
