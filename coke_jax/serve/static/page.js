// The page: an entity, a question about it, answers, reasons and a review.

import { latest, send, useToken } from './api.js';
import { combobox } from './combobox.js';
import { find, make, percent } from './dom.js';
import { entityPanel } from './entity.js';
import { factOf, showReasons } from './reasons.js';
import { Review } from './review.js';

const MOST_STEPS = 3;
const SHOWN_STEPS = 40;

const question = { entity: '', steps: [] };
let about = {};
let review;
let nextSteps = Promise.resolve([]);
const search = latest();
const ask = latest();
const offer = latest();

function report(error) {
  const place = find('problem');
  place.hidden = !error;
  place.textContent = error ? error.message : '';
  if (error && error.status === 401) {
    find('token-form').hidden = false;
    find('token').focus();
  }
}

const showEntity = entityPanel({ choose, report });

// Starts a new question about an entity.
function choose(entity) {
  question.entity = entity;
  question.steps = [];
  find('entity').value = entity;
  find('question-section').hidden = false;
  showEntity(entity);
  update();
  find('entity-title').scrollIntoView({ block: 'nearest' });
}

const arrow = ({ relation, backwards }) =>
  (backwards ? `← ${relation}` : `${relation} →`);

// Shows the question, and asks for its answers and the next relations.
async function update() {
  const { entity, steps } = question;
  find('question').replaceChildren(
    make('strong', {}, entity),
    ...steps.flatMap((step) => [' ',
      make('span', { className: 'relation' }, arrow(step))]),
    steps.length ? ' ?' : ' – add a relation to ask a question');
  find('back').disabled = steps.length === 0;
  find('relation').value = '';
  find('relation').disabled = steps.length >= MOST_STEPS;
  find('reasons-section').hidden = true;
  find('answers-section').hidden = steps.length === 0;
  report(null);
  try {
    if (steps.length < MOST_STEPS) {
      nextSteps = offer('steps', { entity, steps }).then((found) => found.steps);
    }
    await Promise.all([nextSteps, steps.length ? showAnswers() : null]);
  } catch (error) {
    report(error);
  }
}

async function showAnswers() {
  find('answers').replaceChildren();
  find('method').textContent = 'Loading …';
  const asked = { entity: question.entity, steps: [...question.steps] };
  const found = await ask('ask', {
    ...asked,
    top: Number(find('top').value),
    new_only: find('new-only').checked,
    type_matching: find('type-matching').checked,
  });
  find('method').textContent = explainMethod(asked, found);
  find('answers').replaceChildren(
    ...found.answers.map((answer) => answerRow(asked, answer)));
}

function explainMethod(asked, found) {
  if (!found.answers.length) return 'There are no answers.';
  if (found.method === 'chained') {
    const reason = about.max_path_length < asked.steps.length
      ? `trained on paths of at most ${about.max_path_length} relation`
        + `${about.max_path_length === 1 ? '' : 's'}`
      : 'not trained on this combination of directions';
    return `This model was ${reason}. The answers chain its predictions of `
      + 'single steps. The bars are products of probabilities, and are not '
      + 'calibrated.';
  }
  return found.answers[0].calibrated === null
    ? 'The bars are probabilities of the model, which are not calibrated: use '
      + 'them to compare answers.'
    : 'The bars are calibrated probabilities that an answer is correct, if the '
      + 'question has an answer that is not known yet.';
}

function answerRow(asked, answer) {
  const isNew = !answer.known_in;
  const share = answer.calibrated ?? answer.probability;
  const fill = make('div', { className: 'fill' });
  fill.style.width = `${100 * share}%`;
  const row = make('li');
  const open = async () => {
    for (const other of find('answers').children) {
      other.classList.toggle('open', other === row);
    }
    try {
      await showReasons(asked, answer, { choose, review });
      report(null);
    } catch (error) {
      report(error);
    }
    find('reasons-title').focus();
  };
  row.append(
    make('div', { className: 'answer' },
      make('span', { className: 'rank' }, `${answer.rank}.`),
      make('button', {
        type: 'button', className: 'entity', onclick: open,
        title: 'Show the reasons',
      }, answer.label)),
    make('div', { className: isNew ? 'bar new' : 'bar' },
      make('div', { className: 'track', ariaHidden: 'true' }, fill),
      make('span', { className: 'number' }, percent(share))),
    make('div', { className: 'actions' },
      make('span', { className: isNew ? 'tag new' : 'tag' },
        isNew ? 'new' : `known in ${answer.known_in}`),
      isNew && asked.steps.length === 1
        ? review.buttons(factOf(asked, answer)) : ''));
  return row;
}

async function suggestSteps(text) {
  const wanted = text.toLowerCase().trim();
  return (await nextSteps)
    .filter((step) => step.relation.toLowerCase().includes(wanted))
    .slice(0, SHOWN_STEPS)
    .map((step) => ({
      text: arrow(step), step,
      note: step.known ? `${step.known} known` : '',
    }));
}

combobox(find('entity'), find('entity-options'), {
  report,
  async suggest(text) {
    const found = await search(
      `search?limit=10&text=${encodeURIComponent(text.slice(0, 200))}`);
    return found.labels.map((label) => ({ text: label }));
  },
  choose(item) {
    choose(item.text);
    find('relation').focus();
    return item.text;
  },
});

combobox(find('relation'), find('relation-options'), {
  report,
  suggest: suggestSteps,
  choose({ step: { relation, backwards } }) {
    question.steps.push({ relation, backwards });
    update();
    return '';
  },
});

find('back').addEventListener('click', () => {
  question.steps.pop();
  update();
});
for (const id of ['new-only', 'type-matching', 'top']) {
  find(id).addEventListener('change', update);
}
find('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  useToken(find('token').value);
  find('token-form').hidden = true;
  start();
});

async function start() {
  try {
    about = await send('model');
  } catch (error) {
    report(error);
    return;
  }
  report(null);
  const number = (value) => value.toLocaleString('en');
  find('about').textContent = `${about.name}: ${number(about.entities)} `
    + `entities, ${number(about.relations)} relations, `
    + `${number(about.facts)} known facts`;
  document.title = `${about.name} – coke_jax`;
  review = review || new Review(about.name, choose);
  find('entity').focus();
}

start();
