// The state of a dialog in the page: loads it, sends requests, and follows its jobs.
// @ts-check

import { follow, get, link, post } from './api.js';
import {
  announce,
  count,
  predictedText,
  nameClass,
  sentence,
  useCallback,
  useEffect,
  useLoad,
  useMemo,
  useRef,
  useState,
} from './kit.js';

/** @typedef {import('./types.js').Act} Act */
/** @typedef {import('./types.js').Change} Change */
/** @typedef {import('./types.js').Dialog} Dialog */
/** @typedef {import('./types.js').Frontier} Frontier */
/** @typedef {import('./types.js').Job} Job */
/** @typedef {import('./types.js').Label} Label */
/** @typedef {import('./types.js').Reply} Reply */
/** @typedef {import('./types.js').Step} Step */

/**
 * `job` and `reply` while a job runs; `pending`: the number of open requests; `problem`: the last error; `note`: why
 * the last request has added no step.
 * @typedef {{dialog: Dialog | null, error: Error | null, job: Job | null, reply: Reply | null,
 *   pending: number, problem: string, note: string}} Held
 */

/** @param {Dialog} dialog @param {number | null} number @returns {Step | undefined} */
export const stepOf = (dialog, number) => dialog.steps.find((step) => step.number === number);

/** The limits of a reply as text, without its goal. @param {Reply} reply */
export const limitsText = ({ preference, goal }) => (preference ?? '').replace(`, then ${goal}`, '');

/** What a reply minimises within its limits, as text. @param {Pick<Reply, "goal" | "goals">} reply */
export const goalText = ({ goal, goals }) => goals.find(({ then }) => then === goal)?.text ?? goal;

/** "nonspam predicted spam: 65 to 34". @param {Change} change */
const changeText = ({ true: label, predicted, before, after }) =>
  `${nameClass(label)} ${predictedText(predicted)}: ${count(before)} to ${count(after)}`;

/** A reply as text for screen readers. @param {Reply} reply */
export function replyText(reply) {
  const verdict = reply.met ? 'Met' : reply.binding ? `Not met, ${reply.binding} is the limiting constraint` : 'Not met';
  const changes = reply.changes.length ? reply.changes.map(changeText).join('; ') : 'nothing changes';
  return [`${verdict}.`, ...reply.warnings, `${changes}.`].join(' ');
}

/** @param {Job | null} job */
const isActive = (job) => job !== null && (job.state === 'waiting' || job.state === 'running');

/**
 * @param {string} id
 * @returns {Held & {act: Omit<Act, "showRows" | "cell" | "showChanges">, stop: () => Promise<void>, forget: () => void}}
 */
export function useDialog(id) {
  const path = `/api/dialogs/${encodeURIComponent(id)}`;
  const [held, setHeld] = useState(
    /** @type {Held} */ ({ dialog: null, error: null, job: null, reply: null, pending: 0, problem: '', note: '' }),
  );
  /** The followed job, with a `Promise` that resolves when it ends. */
  const followed = useRef(/** @type {{id: string, stop: () => void, end: Promise<Job>} | null} */ (null));
  const change = useCallback(
    (/** @type {Partial<Held>} */ some) => setHeld((now) => ({ ...now, ...some })),
    [],
  );

  const load = useCallback(async () => {
    try {
      const dialog = /** @type {Dialog} */ (await get(path));
      // Responses may arrive out of order: an older one does not replace a newer one.
      setHeld((now) => {
        const older = now.dialog !== null && now.dialog.id === dialog.id && now.dialog.updated > dialog.updated;
        return { ...now, dialog: older ? now.dialog : dialog, error: null };
      });
      return dialog;
    } catch (error) {
      change({ error: /** @type {Error} */ (error) });
      return null;
    }
  }, [path]);

  const watch = useCallback(
    (/** @type {Job} */ first) => {
      if (followed.current?.id === first.id) return followed.current.end;
      followed.current?.stop();
      change({ job: first, reply: null });
      let replies = 0;
      /** @type {(job: Job) => void} */
      let resolve = () => {};
      const end = new Promise((/** @type {(job: Job) => void} */ done) => {
        resolve = done;
      });
      const ended = async (/** @type {Job} */ job) => {
        const dialog = await load();
        if (followed.current?.id === first.id) {
          followed.current = null;
          // A dialog that could not be trained shows its own error.
          const failed = job.state === 'failed' && dialog?.state === 'ready';
          change({
            job: null,
            reply: null,
            problem: failed ? (job.error ?? 'The request failed.') : '',
            note: job.result?.note ?? '',
          });
        }
        // Another job, started in another window or after a restart.
        if (dialog?.job && isActive(dialog.job)) watch(dialog.job);
        const step = dialog && job.result?.step != null ? stepOf(dialog, job.result.step) : undefined;
        if (job.result?.note) announce(job.result.note);
        else if (step) announce(`Step ${step.number} is saved. ${replyText(step)}`);
        resolve(job);
      };
      if (!isActive(first)) {
        followed.current = { id: first.id, stop: () => {}, end };
        ended(first);
        return end;
      }
      const stop = follow(first.id, {
        job: (job) => change({ job }),
        reply: (reply) => {
          change({ reply });
          if (replies === 0 && !reply.final) announce(`First reply. ${replyText(reply)}`);
          replies += 1;
        },
        end: ended,
      });
      followed.current = { id: first.id, stop, end };
      return end;
    },
    [load],
  );

  const refresh = useCallback(async () => {
    const dialog = await load();
    if (dialog?.job && isActive(dialog.job)) watch(dialog.job);
  }, [load, watch]);

  useEffect(() => {
    refresh();
    const unwatch = link.watch((now) => {
      if (now !== 'up') return;
      change({ problem: '' }); // the server can be reached again
      refresh();
    });
    // Another window may have changed the dialog meanwhile.
    const look = () => document.visibilityState === 'visible' && refresh();
    document.addEventListener('visibilitychange', look);
    return () => {
      unwatch();
      document.removeEventListener('visibilitychange', look);
      followed.current?.stop();
      followed.current = null;
    };
  }, [refresh]);

  /** POST, count the request as pending, and show its error. */
  const send = useCallback(
    async (/** @type {string} */ below, /** @type {object} */ body) => {
      setHeld((now) => ({ ...now, pending: now.pending + 1, problem: '', note: '' }));
      try {
        return await post(`${path}/${below}`, body);
      } catch (error) {
        change({ problem: sentence(error) });
        return null;
      } finally {
        setHeld((now) => ({ ...now, pending: now.pending - 1 }));
      }
    },
    [path],
  );

  const acts = useMemo(() => {
    /** @param {string} below @param {object} body */
    const run = async (below, body) => {
      const job = /** @type {Job | null} */ (await send(below, body));
      return job ? watch(job) : null;
    };
    /** @param {string} below @param {object} body */
    const move = async (below, body) => {
      const dialog = /** @type {Dialog | null} */ (await send(below, body));
      if (!dialog) return;
      change({ dialog });
      const step = stepOf(dialog, dialog.position);
      announce(`Step ${dialog.position}: ${step?.preference ?? 'the start'}.`);
    };
    return {
      run,
      refresh,
      undo: () => move('undo', {}),
      redo: () => move('redo', {}),
      goto: (/** @type {number} */ step) => move('goto', { step }),
    };
  }, [send, watch, refresh]);

  const position = held.dialog?.position ?? 0;
  /** @type {Act["prefer"]} */
  const prefer = useCallback(
    (wants, { keep, from, strategies }) =>
      acts.run('prefer', { wants, keep, strategies: strategies ?? null, at: from ?? position }),
    [acts, position],
  );
  const stop = useCallback(async () => {
    const job = followed.current;
    if (job)
      await post(`/api/jobs/${encodeURIComponent(job.id)}/cancel`).catch((error) =>
        change({ problem: sentence(error) }),
      );
  }, []);
  const forget = useCallback(() => change({ problem: '', note: '' }), []);
  const busy = isActive(held.job) || held.pending > 0;
  const act = useMemo(() => ({ ...acts, prefer, busy }), [acts, prefer, busy]);
  return { ...held, act, stop, forget };
}

/** The class in focus, remembered for each dialog. @param {Dialog} dialog */
export function useFocus(dialog) {
  const key = `margrave-focus-${dialog.id}`;
  const kept = dialog.classes.find((label) => JSON.stringify(label) === localStorage.getItem(key));
  const [focus, setFocus] = useState(
    /** @type {Label} */ (kept ?? dialog.positive ?? dialog.classes[0]),
  );
  const choose = useCallback(
    (/** @type {Label} */ label) => {
      setFocus(label);
      localStorage.setItem(key, JSON.stringify(label));
    },
    [key],
  );
  return { focus, setFocus: choose };
}

/** The frontier of the class in focus, loaded after each new step. @param {Dialog} dialog @param {Label} focus */
export function useFrontier(dialog, focus) {
  const query = dialog.classes.length > 2 ? `?positive=${encodeURIComponent(String(focus))}` : '';
  const { data, error, loading, reload } = useLoad(
    (signal) => get(`/api/dialogs/${encodeURIComponent(dialog.id)}/frontier${query}`, signal),
    [dialog.id, dialog.steps.length, query],
  );
  return useMemo(
    () => ({ data: /** @type {Frontier | null} */ (data), error, loading, reload }),
    [data, error, loading, reload],
  );
}
