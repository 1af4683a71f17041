// The theme, applied before the first paint: light, dark, or that of the system (auto).
// @ts-check

/** @typedef {"auto" | "light" | "dark"} Theme */

const KEY = 'margrave-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

/** The theme that the user has chosen. @returns {Theme} */
export function chosenTheme() {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'auto';
}

/** Store the user's choice, and apply it. @param {Theme} theme */
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
