"""Starts Chromium for tests of web pages."""

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest
from playwright import sync_api

_NAMES = ('chromium', 'chromium-browser', 'google-chrome')
_ARGUMENTS = (
  *('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic'),
  *('--no-first-run', '--disable-background-networking', '--disable-sync'),
  '--disable-component-update',
)


@contextlib.contextmanager
def launched() -> Iterator[sync_api.Browser]:
  """Yields a browser. Skips the test if no browser is installed."""
  folders = os.pathsep.join([os.environ.get('PATH', ''), '/usr/bin'])
  found = (shutil.which(name, path=folders) for name in _NAMES)
  path = next((path for path in found if path), None)
  if path is None:
    pytest.skip(f'needs a browser: none of {", ".join(_NAMES)} is installed')
  with sync_api.sync_playwright() as playwright:
    browser = playwright.chromium.launch(
      executable_path=path, args=list(_ARGUMENTS)
    )
    yield browser
    browser.close()


def fits(page: sync_api.Page, width: int) -> bool:
  """Returns whether the page is at most `width` pixels wide."""
  return bool(page.evaluate('document.documentElement.scrollWidth') <= width)
