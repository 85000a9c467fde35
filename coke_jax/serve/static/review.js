// The accepted and rejected facts, which this browser stores.

import { describeFact, find, make } from './dom.js';
import * as storage from './storage.js';

const ACCEPTED = 'accepted';
const VERDICTS = [[ACCEPTED, 'Accept'], ['rejected', 'Reject']];

export class Review {
  // name: the name of the data set. choose(entity): shows an entity.
  constructor(name, choose) {
    this.key = `coke-review ${name}`;
    this.choose = choose;
    this.groups = new WeakMap(); // the fact of each group of buttons
    this.read();
    find('download').addEventListener('click', () => this.download());
    find('clear').addEventListener('click', () => {
      this.facts.clear();
      this.changed();
      find('entity').focus();
    });
    // This event occurs when another window changes the facts.
    window.addEventListener('storage', (event) => {
      if (event.key !== this.key) return;
      this.read();
      this.show();
    });
    this.show();
  }

  read() {
    this.facts = new Map();
    try {
      const stored = storage.read(storage.local, this.key);
      this.facts = new Map(JSON.parse(stored || '[]'));
    } catch {
      // The stored text was damaged.
    }
  }

  verdict(fact) {
    return this.facts.get(JSON.stringify(fact));
  }

  // Sets the verdict on a fact, or removes the verdict if it is the same.
  set(fact, verdict) {
    const name = JSON.stringify(fact);
    if (this.facts.get(name) === verdict) this.facts.delete(name);
    else this.facts.set(name, verdict);
    this.changed();
  }

  changed() {
    storage.write(
      storage.local, this.key, JSON.stringify([...this.facts]));
    this.show();
  }

  show() {
    const verdicts = [...this.facts.values()];
    const accepted = verdicts.filter((one) => one === ACCEPTED).length;
    find('review-section').hidden = verdicts.length === 0;
    find('review-summary').textContent =
      `${accepted} accepted, ${verdicts.length - accepted} rejected. They are `
      + 'kept in this browser.';
    find('download').disabled = accepted === 0;
    find('review').replaceChildren(...[...this.facts].map(
      ([name, verdict]) => this.row(JSON.parse(name), verdict)));
    for (const group of document.querySelectorAll('.verdicts')) {
      this.press(group);
    }
  }

  row(fact, verdict) {
    const remove = make('button', {
      type: 'button', className: 'remove',
      ariaLabel: `Remove ${fact.join(' ')}`, title: 'Remove',
      onclick: () => {
        const place = [...find('review').children].indexOf(
          remove.parentElement);
        this.set(fact, verdict);
        // Keep the focus in the list.
        const left = find('review').children;
        if (left.length) {
          left[Math.min(place, left.length - 1)]
            .querySelector('.remove').focus();
        } else find('entity').focus();
      },
    }, '×');
    return make('li', {},
      make('span', { className: `tag ${verdict}` }, verdict), ' ',
      describeFact(fact, this.choose), remove);
  }

  // Returns buttons to accept and reject a fact.
  buttons(fact) {
    const group = make('span', { className: 'verdicts' },
      ...VERDICTS.map(([verdict, text]) => make('button', {
        type: 'button', className: verdict,
        ariaLabel: `${text} ${fact.join(' ')}`,
        onclick: () => this.set(fact, verdict),
      }, text)));
    this.groups.set(group, fact);
    this.press(group);
    return group;
  }

  // Shows the verdict on a fact in a group of buttons.
  press(group) {
    const verdict = this.verdict(this.groups.get(group));
    [...group.children].forEach((button, index) => {
      button.ariaPressed = String(VERDICTS[index][0] === verdict);
    });
  }

  download() {
    const facts = [...this.facts]
      .filter(([, verdict]) => verdict === ACCEPTED)
      .map(([name]) => JSON.parse(name));
    const kept = facts.filter(
      (fact) => !fact.some((label) => /[\t\r\n]/.test(label)));
    if (kept.length < facts.length) {
      find('review-summary').textContent = `${facts.length - kept.length} `
        + 'facts are left out, because a label contains a tab or a line end.';
    }
    const lines = kept.map((fact) => `${fact.join('\t')}\n`);
    const address = URL.createObjectURL(
      new Blob(lines, { type: 'text/tab-separated-values' }));
    make('a', { href: address, download: 'accepted.tsv' }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }
}
