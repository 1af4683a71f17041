// The entry point: routes, the top bar with the theme, and notices if the server is unreachable or locked.
// @ts-check

import { get, link, ping, post, readWith } from './api.js';
import {
  Boundary,
  Icon,
  Notice,
  html,
  render,
  sentence,
  useEffect,
  useFocusKept,
  useLoad,
  useRef,
  useState,
} from './kit.js';
import { chooseTheme, chosenTheme } from './theme.js';
import { Choose } from './start_choose.js';
import { DialogPage } from './dialog.js';
import { Setup } from './start_setup.js';
import { Start } from './start.js';

const RETRY_MS = 2000;
const LOOK_MS = 30_000;

/** Decode a part of an address; a malformed one is left unchanged. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** `#/d/7/frontier` -> ["d", "7", "frontier"]; `#/` -> []. @param {string} hash */
const routeParts = (hash) => hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decoded);

function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const change = () => setHash(location.hash);
    window.addEventListener('hashchange', change);
    change(); // it may have changed since the first rendering
    return () => window.removeEventListener('hashchange', change);
  }, []);
  return routeParts(hash);
}

/** "up", "down" or "locked"; looks often while the server is down, else now and then while the page is visible. */
function useLink() {
  const [state, setState] = useState(link.state);
  useEffect(() => link.watch(setState), []);
  useEffect(() => {
    const look = () => document.visibilityState === 'visible' && ping();
    const timer = setInterval(look, state === 'down' ? RETRY_MS : LOOK_MS);
    return () => clearInterval(timer);
  }, [state]);
  return state;
}

function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme());
  const choices = /** @type {const} */ ([
    ['auto', 'Same as the system', 'auto'],
    ['light', 'Light', 'sun'],
    ['dark', 'Dark', 'moon'],
  ]);
  return html`<div class="switch" role="group" aria-label="Theme">
    ${choices.map(
      ([name, title, icon]) =>
        html`<button
          type="button"
          title=${title}
          aria-label=${title}
          aria-pressed=${theme === name}
          onClick=${() => {
            chooseTheme(name);
            setTheme(name);
          }}
        >
          <${Icon} name=${icon} />
        </button>`,
    )}
  </div>`;
}

function TokenForm() {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await post('/api/session', { token: token.trim() });
      location.reload();
    } catch (error) {
      setProblem(sentence(error));
      setBusy(false);
    }
  };
  return html`<form class="card stack token-form" onSubmit=${submit}>
    <h1>Enter the token</h1>
    <p class="muted">
      The studio needs a token. The command that started the studio has printed an address with it.
    </p>
    <input type="text" autocomplete="username" value="margrave" readonly hidden />
    <div class="field">
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autocomplete="current-password"
        value=${token}
        onInput=${(/** @type {any} */ event) => setToken(event.target.value)}
      />
    </div>
    ${problem ? html`<${Notice} kind="bad">${problem}<//>` : null}
    <button type="submit" class="button-primary" disabled=${busy || !token.trim()}>Open the studio</button>
  </form>`;
}

/** @param {{parts: string[]}} props */
function Page({ parts }) {
  const [place, id, more, last] = parts;
  if (place === 's' && id && more) {
    return html`<${DialogPage} key=${`${id} ${more}`} id=${id} share=${more} tab=${last ?? ''} />`;
  }
  return html`<${OwnPage} parts=${parts} />`;
}

/** @param {{parts: string[]}} props */
function OwnPage({ parts }) {
  const studio = useLoad((signal) => get('/api/studio', signal), []);
  const [place, id, more] = parts;
  if (place === 'd' && id) return html`<${DialogPage} key=${id} id=${id} share="" tab=${more ?? ''} />`;
  if (place === 'new' && id) {
    return html`<${Setup} key=${parts.join('/')} id=${id} kind=${more} studio=${studio.data} />`;
  }
  if (place === 'new') return html`<${Choose} studio=${studio.data} />`;
  return html`<${Start} />`;
}

function App() {
  const parts = useRoute();
  const state = useLink();
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const place = parts.slice(0, 2).join('/');
  const reads = parts[0] === 's';
  readWith(reads ? (parts[2] ?? '') : null);
  const first = useRef(true);
  useFocusKept();
  useEffect(() => {
    // A new page starts at its top, also for screen readers; the first page is already there.
    if (first.current) first.current = false;
    else {
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  }, [place]);
  /** @param {Event} event */
  const skip = (event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return html`<a class="button skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="top">
      ${
        reads
          ? html`<span class="brand"><img src="favicon.svg" alt="" />Margrave</span>`
          : html`<a class="brand" href="#/"><img src="favicon.svg" alt="" />Margrave</a>`
      }
      <span class="grow"></span>
      <${ThemeSwitch} />
    </header>
    ${
      state === 'down'
        ? html`<div class="top-notice">
          <${Notice} kind="warn" title="The studio cannot be reached.">
            Nothing that was saved is lost. This page tries again every few seconds and then continues by itself.
          <//>
        </div>`
        : null
    }
    <main class="page" id="main" tabindex="-1" ref=${main}>
      <${Boundary} key=${place} what="This page">
        ${state === 'locked' ? html`<${TokenForm} />` : html`<${Page} parts=${parts} />`}
      <//>
    </main>`;
}

render(html`<${App} />`, /** @type {Element} */ (document.getElementById('app')));
