// The facts that were accepted or rejected. They are kept in this browser.

import { describeFact, find, make } from './dom.js';

const ACCEPTED = 'accepted';

export class Review {
  // key: where the facts are stored. choose: called with a chosen entity.
  constructor(key, choose) {
    this.key = `coke-review ${key}`;
    this.choose = choose;
    this.listeners = [];
    this.facts = new Map();
    try {
      this.facts = new Map(JSON.parse(localStorage.getItem(this.key) || '[]'));
    } catch {
      // The stored text was damaged.
    }
    find('download').addEventListener('click', () => this.download());
    find('clear').addEventListener('click', () => {
      this.facts.clear();
      this.changed();
    });
    this.changed();
  }

  verdict(fact) {
    return this.facts.get(JSON.stringify(fact));
  }

  // Sets the verdict on a fact, or removes it if it is the same as before.
  set(fact, verdict) {
    const name = JSON.stringify(fact);
    if (this.facts.get(name) === verdict) this.facts.delete(name);
    else this.facts.set(name, verdict);
    this.changed();
  }

  changed() {
    localStorage.setItem(this.key, JSON.stringify([...this.facts]));
    const verdicts = [...this.facts.values()];
    const accepted = verdicts.filter((one) => one === ACCEPTED).length;
    find('review-summary').textContent = verdicts.length
      ? `${accepted} accepted, ${verdicts.length - accepted} rejected, kept in `
        + 'this browser'
      : 'Accept or reject new answers to collect facts here.';
    find('download').disabled = accepted === 0;
    find('clear').disabled = verdicts.length === 0;
    find('review').replaceChildren(...[...this.facts].map(([name, verdict]) => {
      const fact = JSON.parse(name);
      return make('li', {},
        make('span', { className: `tag ${verdict}` }, verdict), ' ',
        describeFact(fact, this.choose), ' ',
        make('button', {
          type: 'button', onclick: () => this.set(fact, verdict),
          ariaLabel: `Remove ${fact.join(' ')}`,
        }, '×'));
    }));
    for (const listener of this.listeners) listener();
  }

  // Returns buttons to accept and reject a fact.
  buttons(fact) {
    const group = make('span', { className: 'actions' });
    for (const [verdict, text] of [[ACCEPTED, 'Accept'],
      ['rejected', 'Reject']]) {
      group.append(make('button', {
        type: 'button', className: text.toLowerCase(),
        ariaLabel: `${text} ${fact.join(' ')}`,
        ariaPressed: String(this.verdict(fact) === verdict),
        onclick: (event) => {
          this.set(fact, verdict);
          for (const one of group.children) one.ariaPressed = 'false';
          event.target.ariaPressed = String(this.verdict(fact) === verdict);
        },
      }, text));
    }
    return group;
  }

  download() {
    const lines = [];
    let left = 0;
    for (const [name, verdict] of this.facts) {
      if (verdict !== ACCEPTED) continue;
      const fact = JSON.parse(name);
      if (fact.some((label) => /[\t\r\n]/.test(label))) left += 1;
      else lines.push(`${fact.join('\t')}\n`);
    }
    if (left) {
      find('review-summary').textContent =
        `${left} facts have labels with a tab or line end and are left out`;
    }
    const address = URL.createObjectURL(
      new Blob(lines, { type: 'text/tab-separated-values' }));
    const link = make('a', { href: address, download: 'accepted.tsv' });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }
}
