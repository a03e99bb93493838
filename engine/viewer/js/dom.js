/** Elements of the page. Text goes in as text, never as markup: names of tensors may hold anything. */

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * @param {string} tag @param {{[name: string]: string}} [attributes] @param {...(Node | string)} content
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

/** Says something to people who hear the page. @param {string} text */
export function announce(text) {
  byId("spoken").textContent = text;
}
