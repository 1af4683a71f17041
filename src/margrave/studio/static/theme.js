// The theme, set before the first paint: light, dark, or as the system has it (auto).
// @ts-check

/** @typedef {"auto" | "light" | "dark"} Theme */

const KEY = 'margrave-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

/** What the user chose. @returns {Theme} */
export function chosenTheme() {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'auto';
}

/** Choose, keep the choice, and show it. @param {Theme} theme */
export function chooseTheme(theme) {
  if (theme === 'auto') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  show();
}

function show() {
  const theme = chosenTheme();
  const shown = theme === 'auto' ? (system.matches ? 'dark' : 'light') : theme;
  document.documentElement.dataset.theme = shown;
}

show();
system.addEventListener('change', show);
