/** The colours of the page, which style.css says once for both themes. */

/** @typedef {{[name: string]: string}} Inks */

const NAMES = ["paper", "panel", "text", "muted", "line", "gap", "live", "footprint", "bound", "budget", "peak", "accent"];

/** @returns {Inks} */
export function inks() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}
