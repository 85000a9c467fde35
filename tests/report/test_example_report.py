"""Writes the report of the example model, and opens it in a browser."""

import chromium
import pytest

import coke_jax
from coke_jax.report import write

# A JavaScript expression: the captions of the tables that must be scrolled,
# except tables in `details` elements.
SCROLLED = """[...document.querySelectorAll('.scroll')]
  .filter(part => !part.closest('details'))
  .filter(part => part.scrollWidth > part.clientWidth)
  .map(part => part.querySelector('caption').textContent)"""


@pytest.fixture(scope='module')
def written(tmp_path_factory):
  folder = tmp_path_factory.mktemp('report')
  return write.write_report(coke_jax.EXAMPLE_MODEL, folder / 'report.html')


def test_the_report_has_the_stored_metrics(written):
  assert written.stat().st_size < 5e6
  # This is the mean quantile in results.json.
  assert '>0.966<' in written.read_text(encoding='utf-8')


@pytest.mark.parametrize(
  ('width', 'allowed'),
  [
    (400, {'By side', 'By category', 'Counts by split', '10 relations'}),
    (500, {'10 relations'}),
    (1280, set()),
  ],
)
def test_tables_fit_narrow_windows(written, width, allowed):
  with chromium.launched() as browser:
    page = browser.new_page(viewport={'width': width, 'height': 800})
    page.goto(written.as_uri())
    assert chromium.fits(page, width)
    scrolled = {
      caption.partition(',')[0] for caption in page.evaluate(SCROLLED)
    }
  assert scrolled <= allowed
  # The table of relations has nine columns, so it is scrolled on a phone.
  assert '10 relations' in scrolled or width > 400
