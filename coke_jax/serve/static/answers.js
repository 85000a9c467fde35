// The answers to a question, with bars and reasons.

import { find, make, percent } from './dom.js';
import { factOf, reasonsFor } from './reasons.js';

let opened = 0;

// Shows answers.
// question: see `question.js`. found: the response to `ask`.
// tools: `choose`, `report`, `review`, and `about`, the response to `model`.
export function showAnswers(question, found, tools) {
  find('method').textContent = explainMethod(question, found, tools.about);
  const list = find('answers');
  list.classList.toggle('single', question.steps.length === 1);
  list.replaceChildren(...found.answers.map(
    (answer) => rowOf(question, answer, tools)));
}

function explainMethod(question, found, about) {
  if (!found.answers.length) {
    return find('new-only').checked || find('type-matching').checked
      ? 'No entity is left. Remove a restriction.' : 'There are no answers.';
  }
  if (found.method === 'chained') {
    const longest = about.max_path_length;
    const reason = longest < question.steps.length
      ? `trained on paths of at most ${longest} relation`
        + `${longest === 1 ? '' : 's'}`
      : 'not trained on this combination of directions';
    return `This model was ${reason}. The answers combine its predictions of `
      + 'single steps. The bars are products of probabilities, and are not '
      + 'calibrated.';
  }
  return found.answers[0].calibrated === null
    ? 'The bars are probabilities that are not calibrated. Use them only to '
      + 'compare answers.'
    : 'If the question has an answer that is not known yet, the bars are the '
      + 'calibrated probabilities of the answers.';
}

function rowOf(question, answer, tools) {
  const isNew = !answer.known_in;
  const share = answer.calibrated ?? answer.probability;
  const fill = make('div', { className: 'fill' });
  fill.style.width = `${100 * share}%`;
  const reasons = make('div', {
    className: 'reasons', hidden: true, id: `reasons-${(opened += 1)}`,
  });
  const button = make('button', {
    type: 'button', className: 'answer', ariaExpanded: 'false',
    'aria-controls': reasons.id, title: 'Show the reasons',
  }, make('span', { className: 'rank' }, `${answer.rank}.`), ' ',
  make('bdi', {}, answer.label));
  button.addEventListener('click', () => toggle());
  const row = make('li', { className: isNew ? 'new' : '' },
    make('div', { className: 'line' },
      button,
      make('div', { className: 'track', ariaHidden: 'true' }, fill),
      make('span', { className: 'number' }, percent(share)),
      make('span', { className: isNew ? 'tag new' : 'tag' },
        ({ '': 'new', train: 'known' })[answer.known_in]
          ?? `known in ${answer.known_in}`),
      isNew && question.steps.length === 1
        ? tools.review.buttons(factOf(question, answer)) : ''),
    reasons);

  async function toggle() {
    const open = button.ariaExpanded !== 'true';
    for (const other of find('answers').querySelectorAll('.answer')) {
      other.ariaExpanded = String(other === button && open);
      find(other.getAttribute('aria-controls')).hidden = true;
    }
    reasons.hidden = !open;
    if (!open || reasons.dataset.complete) return;
    reasons.replaceChildren(make('p', { className: 'quiet' }, 'Loading …'));
    try {
      const children = await reasonsFor(question, answer, {
        ...tools, width: Math.max(260, reasons.clientWidth),
      });
      reasons.replaceChildren(...children, make('button', {
        type: 'button', onclick: () => tools.choose(answer.label),
      }, 'Go to ', make('bdi', {}, answer.label)));
      reasons.dataset.complete = 'true';
    } catch (error) {
      button.ariaExpanded = 'false';
      reasons.hidden = true;
      tools.report(error, toggle);
    }
  }

  return row;
}
