"""Assembles the HTML file of a report from its sections."""

import base64
import hashlib
import pathlib
from collections.abc import Sequence

from coke_jax.report import (
  content,
  data_sections,
  markup,
  metric_sections,
  model_sections,
  parts,
)

_STATIC = pathlib.Path(__file__).with_name('static')
_SECTIONS = (
  metric_sections.headline,
  metric_sections.metrics,
  metric_sections.relations,
  metric_sections.hardest,
  model_sections.curves,
  model_sections.calibration,
  model_sections.maps,
  data_sections.data,
  data_sections.settings,
  data_sections.versions,
)


def render(report: content.Report) -> str:
  """Returns the HTML file of a report.

  The style sheet and the script are part of the file. The content security
  policy of the file forbids all other scripts and all requests.

  Args:
    report: the content.
  """
  style, script = (
    (_STATIC / name).read_text(encoding='utf-8')
    for name in ('report.css', 'report.js')
  )
  digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
  policy = (
    "default-src 'none'; style-src 'unsafe-inline'; "
    f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
  )
  sections = [make(report) for make in _SECTIONS]
  head = markup.element(
    'head',
    markup.element('meta', charset='utf-8'),
    markup.element(
      'meta', http_equiv='Content-Security-Policy', content=policy
    ),
    markup.element(
      'meta', name='viewport', content='width=device-width, initial-scale=1'
    ),
    markup.element('meta', name='referrer', content='no-referrer'),
    markup.element('title', f'{report.name}: report'),
    markup.element('style', markup.Markup(style)),
  )
  body = markup.element(
    'body',
    _header(report),
    _contents(sections),
    markup.element('main', *map(_section, sections)),
    markup.element('script', markup.Markup(script)),
  )
  return f'<!doctype html>\n{markup.element("html", head, body, lang="en")}\n'


def _header(report: content.Report) -> markup.Markup:
  """Returns the title and a summary of the run."""
  task = 'Path queries' if report.about_paths else 'Link prediction'
  checkpoint = f'Checkpoint of step {report.step:,}'
  if report.epoch is not None:
    checkpoint += f' (epoch {report.epoch:.3g})'
  if report.exported:
    checkpoint += ', from an exported model'
  return markup.element(
    'header',
    parts.paragraph(task, kind='kicker'),
    markup.element('h1', markup.label(report.name)),
    parts.paragraph(report.summary, f' {checkpoint}.', kind='summary'),
  )


def _contents(sections: Sequence[parts.Section]) -> markup.Markup:
  """Returns the table of contents."""
  return markup.element(
    'nav',
    markup.element(
      'ol',
      *(
        markup.element(
          'li', markup.element('a', one.title, href=f'#{one.anchor}')
        )
        for one in sections
      ),
    ),
    aria_label='Contents',
  )


def _section(one: parts.Section) -> markup.Markup:
  heading = f'{one.anchor}-title'
  return markup.element(
    'section',
    markup.element('h2', one.title, id=heading),
    one.body,
    id=one.anchor,
    aria_labelledby=heading,
  )
