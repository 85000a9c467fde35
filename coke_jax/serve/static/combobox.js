// An input with a list of suggestions, for mouse and keyboard.

import { make } from './dom.js';

let instances = 0;

// Makes a combobox of an input and a list. Typing, an arrow key, Enter or a
// click opens the list.
// suggest(text): returns, or resolves to, items with `text` and `note`.
// choose(item): called when an item is chosen. Returns the new text.
// nothing(text): returns the message for an empty list.
// report(error, retry): shows an error.
export function combobox(input, list, { suggest, choose, nothing, report }) {
  const prefix = `option-${(instances += 1)}-`;
  let items = [];
  let active = -1;
  let current = 0; // If this number has changed, a response is ignored.

  input.setAttribute('role', 'combobox');
  input.setAttribute('aria-autocomplete', 'list');
  input.setAttribute('aria-expanded', 'false');
  input.setAttribute('aria-controls', list.id);
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Suggestions');

  function close() {
    current += 1;
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
    active = -1;
  }

  function activate(place) {
    active = place;
    for (const [index, option] of [...list.children].entries()) {
      option.setAttribute('aria-selected', String(index === place));
      if (index === place) {
        input.setAttribute('aria-activedescendant', option.id);
        option.scrollIntoView({ block: 'nearest' });
      }
    }
  }

  function pick(place) {
    const item = items[place];
    close();
    input.value = choose(item);
  }

  function optionOf(item, index) {
    const option = make('li', { id: prefix + index, dir: 'auto' }, item.text);
    option.setAttribute('role', 'option');
    if (item.note) option.append(make('small', {}, item.note));
    option.addEventListener('click', () => pick(index));
    return option;
  }

  async function open() {
    current += 1;
    const own = current;
    const text = input.value;
    let found;
    try {
      found = await suggest(text);
    } catch (error) {
      report(error, () => {
        input.focus();
        open();
      });
      return;
    }
    if (own !== current || document.activeElement !== input) return;
    items = found;
    if (items.length) list.replaceChildren(...items.map(optionOf));
    else {
      const empty = make('li', { className: 'nothing' }, nothing(text));
      empty.setAttribute('role', 'option');
      empty.setAttribute('aria-disabled', 'true');
      list.replaceChildren(empty);
    }
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    activate(items.length ? 0 : -1);
  }

  // Keep the focus on the input.
  list.addEventListener('mousedown', (event) => event.preventDefault());
  input.addEventListener('input', open);
  input.addEventListener('click', () => list.hidden && open());
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const moves = event.key === 'ArrowDown' || event.key === 'ArrowUp';
    if (event.key === 'Escape') close();
    if (event.key === 'Enter' && list.hidden && input.value) open();
    if (list.hidden) {
      if (!moves) return;
      event.preventDefault();
      open();
      return;
    }
    const last = items.length - 1;
    const places = {
      ArrowDown: active === last ? 0 : active + 1,
      ArrowUp: active <= 0 ? last : active - 1,
    };
    if (moves && items.length) {
      event.preventDefault();
      activate(places[event.key]);
    } else if (event.key === 'Enter' && active >= 0) {
      event.preventDefault();
      pick(active);
    }
  });
  return { close };
}
