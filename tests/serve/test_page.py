"""Tests the web page of a server in Chromium."""

import pathlib
import re

import chromium
import pytest
from playwright import sync_api

import coke_jax
from coke_jax.serve import server

WIDE, NARROW = 1280, 400
PATIENCE = 120_000.0  # maximum milliseconds to wait, enough for a busy machine
MOST_TABS = 60  # maximum number of Tab keys until a button has the focus


@pytest.fixture(scope='module')
def running():
  options = server.Options(port=0, warm_up=False)
  with server.Server(coke_jax.EXAMPLE_MODEL, options) as started:
    yield started


@pytest.fixture(scope='module')
def browser():
  with chromium.launched() as launched:
    yield launched


@pytest.fixture
def open_page(browser, running):
  """Returns a function that opens the page in a new browser profile.

  At the end, checks that no script failed and no other host was contacted.
  """
  contexts, problems, requests = [], [], []

  def open_one(path='/', *, width=WIDE, mode='light', ready='#entity'):
    context = browser.new_context(
      viewport={'width': width, 'height': 800}, color_scheme=mode
    )
    contexts.append(context)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on('pageerror', lambda error: problems.append(str(error)))
    page.on('console', lambda message: note(message))
    page.on('request', lambda request: requests.append(request.url))
    page.goto(running.address + path)
    sync_api.expect(page.locator(ready)).to_be_visible()
    return page

  def note(message):
    # The tests expect responses with an error status. Chromium reports them.
    if message.type in ('error', 'warning') and (
      'Failed to load resource' not in message.text
    ):
      problems.append(message.text)

  sync_api.expect.set_options(timeout=PATIENCE)
  yield open_one
  for context in contexts:
    context.close()
  assert not problems
  own = (f'{running.address}/', f'blob:{running.address}/')
  assert [url for url in requests if not url.startswith(own)] == []


def expect_answers(page, running, *question, **options):
  """Waits until the page shows the answers of `Model.predict`."""
  predicted = running.engine.served.model.predict(question, **options)
  sync_api.expect(page.locator('#answers .answer bdi')).to_have_text(
    [one.label for one in predicted]
  )
  return predicted


def choose(page, field, text, expected):
  """Types a text into a field and chooses the first suggestion."""
  page.locator(field).focus()
  page.keyboard.type(text)
  first = page.locator(f'{field}-options li[aria-selected="true"]')
  sync_api.expect(first).to_contain_text(expected)
  page.keyboard.press('Enter')


def tab_to(page, name):
  """Presses Tab until the name of the focused button matches `name`.

  Returns the name of the button.
  """
  for _ in range(MOST_TABS):
    page.keyboard.press('Tab')
    found = page.evaluate(
      'document.activeElement.ariaLabel || document.activeElement.textContent'
    ).strip()
    if re.search(name, found):
      return found
  raise AssertionError(f'no focus on {name} after {MOST_TABS} Tab keys')


def test_a_question_is_built_answered_and_reviewed_by_keyboard(
  open_page, running
):
  page = open_page()
  sync_api.expect(page.locator('#entity')).to_be_focused()
  page.keyboard.type('ASUNCION')
  options = page.locator('#entity-options li')
  sync_api.expect(options.first).to_have_text('Asunción')
  page.keyboard.press('ControlOrMeta+a')
  page.keyboard.press('Delete')
  choose(page, '#entity', 'kenya', 'Kenya')
  sync_api.expect(page.locator('#facts')).to_contain_text('Nairobi')

  sync_api.expect(page.locator('#relation')).to_be_focused()
  choose(page, '#relation', 'borders', 'borders →')
  predicted = expect_answers(page, running, 'Kenya', 'borders', '?')
  rows = page.locator('#answers > li')
  for row, answer in zip(rows.all(), predicted, strict=True):
    known = 'known' if answer.known_in == 'train' else 'known in valid'
    tag = known if answer.known_in else 'new'
    sync_api.expect(row.locator('.tag')).to_have_text(tag)
    shown = row.locator('.number').inner_text()
    width = row.locator('.fill').evaluate('bar => parseFloat(bar.style.width)')
    assert float(shown.split()[0]) == pytest.approx(width, abs=0.5)

  sync_api.expect(page.locator('#relation')).to_be_focused()
  choose(page, '#relation', 'intermediate', 'intermediate_region →')
  expect_answers(page, running, 'Kenya', 'borders', 'intermediate_region', '?')

  tab_to(page, '1. Eastern Africa')
  page.keyboard.press('Enter')
  reasons = page.locator('#answers .reasons').first
  sync_api.expect(reasons.locator('svg.picture')).to_be_visible()
  sync_api.expect(reasons.locator('.paths li').first).to_contain_text(
    re.compile('Kenya.*borders.*intermediate_region.*Eastern Africa')
  )
  accepted = tab_to(page, '^Accept Kenya borders ').split(' ', 3)[3]
  page.keyboard.press('Enter')
  tab_to(page, '^Reject Kenya borders (?!' + re.escape(accepted) + ')')
  page.keyboard.press('Enter')
  sync_api.expect(page.locator('#review-summary')).to_contain_text(
    '1 accepted, 1 rejected'
  )
  tab_to(page, 'Download accepted facts')
  with page.expect_download() as download:
    page.keyboard.press('Enter')
  assert download.value.suggested_filename == 'accepted.tsv'
  content = pathlib.Path(download.value.path()).read_text(encoding='utf-8')
  assert content == f'Kenya\tborders\t{accepted}\n'


def test_everything_fits_into_a_narrow_dark_window(open_page):
  page = open_page(width=NARROW, mode='dark')
  background = 'getComputedStyle(document.body).backgroundColor'
  red = int(re.findall(r'\d+', page.evaluate(background))[0])
  assert red < 64
  assert chromium.fits(page, NARROW)
  choose(page, '#entity', 'kenya', 'Kenya')
  for tab, content in (
    ('facts', 'dd'),
    ('suspicious', 'li'),
    ('map', 'svg.picture'),
  ):
    page.locator(f'#{tab}-tab').click()
    sync_api.expect(page.locator(f'#{tab} {content}').first).to_be_visible()
    assert chromium.fits(page, NARROW)
  # The facts of a group are listed below the map.
  page.locator('#map .choices button').first.click()
  sync_api.expect(page.locator('#map .lines li')).to_have_count(8)
  page.locator('#relation').click()
  sync_api.expect(page.locator('#relation-options li').first).to_be_visible()
  assert chromium.fits(page, NARROW)
  choose(page, '#relation', 'borders', 'borders →')
  page.locator('#answers .answer').first.click()
  sync_api.expect(page.locator('.reasons svg.picture')).to_be_visible()
  assert chromium.fits(page, NARROW)


def test_further_facts_are_loaded(open_page):
  page = open_page('/#entity=United+Kingdom')
  counted = page.locator('#facts p')
  sync_api.expect(counted).to_have_text('100 of 170 known facts')
  more = page.locator('#facts button')
  more.click()
  sync_api.expect(counted).to_have_text('170 known facts')
  sync_api.expect(more).to_be_hidden()
  assert page.locator('#facts dd a').count() == 170


def test_tabs_are_chosen_with_the_arrow_keys(open_page):
  page = open_page('/#entity=Nairobi')
  sync_api.expect(page.locator('#facts dd').first).to_be_visible()
  tab_to(page, '^Facts$')
  page.keyboard.press('ArrowRight')
  sync_api.expect(page.locator('#suspicious-tab')).to_be_focused()
  sync_api.expect(page.locator('#suspicious')).to_be_visible()
  page.keyboard.press('Home')
  sync_api.expect(page.locator('#facts')).to_be_visible()


def test_a_question_has_an_address_and_the_back_button_returns_to_it(
  open_page, running
):
  page = open_page('/#entity=Kenya&step=%3Eborders')
  expect_answers(page, running, 'Kenya', 'borders', '?')
  page.locator('#new-only').check()
  expect_answers(page, running, 'Kenya', 'borders', '?', new_only=True)
  page.locator('#new-only').uncheck()
  page.locator('#facts').get_by_role('link', name='Nairobi', exact=True).click()
  sync_api.expect(page.locator('#entity-title')).to_have_text('Nairobi')
  sync_api.expect(page.locator('#entity-title')).to_be_focused()
  assert page.url.endswith('#entity=Nairobi')
  page.go_back()
  sync_api.expect(page.locator('#entity-title')).to_have_text('Kenya')
  expect_answers(page, running, 'Kenya', 'borders', '?')
  page.locator('#question button').click()
  sync_api.expect(page.locator('#answers-section')).to_be_hidden()


def test_a_step_can_lead_from_the_tail_to_the_head(open_page, running):
  page = open_page('/#entity=Kenya&step=%3Cborders')
  predicted = expect_answers(page, running, '?', 'borders', 'Kenya')
  new = next(one.label for one in predicted if not one.known_in)
  page.get_by_role('button', name=f'Accept {new} borders Kenya').click()
  sync_api.expect(page.locator('#review li')).to_contain_text(
    f'{new} borders Kenya'
  )


def test_a_review_is_kept_and_can_be_changed(open_page):
  page = open_page('/#entity=Kenya&step=%3Eborders')
  pressed = page.locator('#answers [aria-pressed="true"]')
  page.locator('#answers .accepted').first.click()
  sync_api.expect(pressed).to_have_text('Accept')
  page.reload()
  sync_api.expect(page.locator('#review li')).to_have_count(1)
  sync_api.expect(pressed).to_have_text('Accept')
  page.locator('#answers .rejected').first.click()
  sync_api.expect(pressed).to_have_text('Reject')
  sync_api.expect(page.locator('#download')).to_be_disabled()
  page.locator('#review .remove').click()
  sync_api.expect(pressed).to_have_count(0)
  sync_api.expect(page.locator('#review-section')).to_be_hidden()


def test_errors_are_explained_and_requests_can_be_repeated(open_page, running):
  page = open_page('/#entity=Kenia')
  problem = page.locator('#problem')
  sync_api.expect(problem).to_contain_text("unknown entity 'Kenia'")
  sync_api.expect(problem).to_contain_text("or 'Kenya'?")
  sync_api.expect(page.locator('#retry')).to_be_hidden()
  page.locator('#entity').fill('no such entity')
  sync_api.expect(page.locator('#entity-options')).to_have_text(
    'No entity contains “no such entity”'
  )
  page.locator('#entity').fill('')
  choose(page, '#entity', 'kenya', 'Kenya')
  sync_api.expect(problem).to_be_hidden()
  sync_api.expect(page.locator('#choices small').first).to_be_visible()

  page.context.set_offline(True)
  page.locator('#choices button', has_text='borders →').click()
  sync_api.expect(problem).to_contain_text('no connection to the server')
  page.context.set_offline(False)
  page.locator('#retry').click()
  expect_answers(page, running, 'Kenya', 'borders', '?')

  page.route('**/v1/explain', lambda route: refuse(route, 503, 'waiting'))
  page.locator('#answers .answer').first.click()
  sync_api.expect(problem).to_contain_text('waiting')
  page.unroute_all()
  page.locator('#retry').click()
  sync_api.expect(page.locator('.reasons svg.picture')).to_be_visible()


def test_the_page_requests_a_token(open_page):
  given = []

  def check(route):
    given.append(route.request.headers.get('authorization', ''))
    if given[-1] == 'Bearer right':
      route.continue_()
    else:
      refuse(route, 401, 'expected Authorization: Bearer <token>')

  page = open_page()
  page.route('**/v1/**', check)
  page.reload()
  for token, message in (
    ('wrong', 'needs a token'),
    ('right', 'does not accept this token'),
  ):
    sync_api.expect(page.locator('#token-text')).to_contain_text(message)
    page.locator('#token').fill(token)
    page.keyboard.press('Enter')
  sync_api.expect(page.locator('#about')).to_contain_text('5,853 entities')
  assert given[:3] == ['', 'Bearer wrong', 'Bearer right']


def test_the_description_of_the_api_is_shown(open_page):
  page = open_page('/docs', ready='#operations section >> nth=0')
  text = page.locator('#operations').inner_text()
  assert 'POST /v1/predict' in text
  relations = page.locator('#operations section', has_text='/v1/relations')
  relations.locator('summary').click()
  sync_api.expect(relations.locator('details')).to_contain_text(
    'Africa **region Kenya means Kenya region Africa'
  )
  assert '`' not in page.locator('#operations').inner_text()
  assert chromium.fits(page, WIDE)


def refuse(route, status, message):
  """Answers a request with an error."""
  route.fulfill(
    status=status, json={'error': message}, headers={'Retry-After': '0.01'}
  )
