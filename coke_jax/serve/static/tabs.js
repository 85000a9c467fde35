// Tabs, for mouse and keyboard.

import { find } from './dom.js';

// Connects the tabs in a list with their panels.
// onShow: called with the id of a panel when it is shown.
export function tabs(list, onShow) {
  const all = [...list.querySelectorAll('[role="tab"]')];

  function show(tab) {
    for (const one of all) {
      one.setAttribute('aria-selected', String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
      find(one.getAttribute('aria-controls')).hidden = one !== tab;
    }
    onShow(tab.getAttribute('aria-controls'));
  }

  for (const tab of all) tab.addEventListener('click', () => show(tab));
  list.addEventListener('keydown', (event) => {
    const place = all.indexOf(document.activeElement);
    const places = {
      ArrowRight: (place + 1) % all.length,
      ArrowLeft: (place + all.length - 1) % all.length,
      Home: 0,
      End: all.length - 1,
    };
    if (place < 0 || !(event.key in places)) return;
    event.preventDefault();
    all[places[event.key]].focus();
    show(all[places[event.key]]);
  });
}
