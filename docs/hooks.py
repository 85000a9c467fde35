"""Hooks of mkdocs: adds the pages that are generated, and mends links.

Pages in docs/ link to files outside of docs/ by relative paths, so that the
links work where the repository is browsed. On the site, such a link leads to
the file in the public repository, and such a picture is copied.
"""

import logging
import pathlib
import posixpath
import re
from typing import Any

import generated_pages
from mkdocs.structure import files as files_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
_LOG = logging.getLogger('mkdocs.hooks.coke_jax')
_LINK = re.compile(r'(\]\()((?!\w+:|#)[^)\s#]+)')
_PICTURES = ('.png', '.svg')
_COPIES = 'copied'  # the folder for pictures from outside of docs/


def on_config(config: Any) -> Any:
  """Puts the pages of all modules into the navigation."""
  modules = [
    {package: path} for package, path in generated_pages.module_index()
  ]
  for section in config['nav']:
    for entry in section.get('Project', []):
      if entry.get('Every module') == 'MODULES':
        entry['Every module'] = modules
  return config


def on_files(files: Any, config: Any) -> Any:
  """Adds the generated pages."""
  for path, text in generated_pages.render_all().items():
    files.append(files_lib.File.generated(config, path, content=text))
  for picture in (ROOT / 'experiments' / 'results').rglob('*.png'):
    files.append(
      files_lib.File.generated(
        config,
        f'{_COPIES}/{picture.relative_to(ROOT).as_posix()}',
        abs_src_path=str(picture),
      )
    )
  return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
  """Mends the links of a page to files outside of docs/."""
  # Where the page lies in the repository, which links are relative to.
  source = generated_pages.SOURCES.get(
    page.file.src_uri, f'docs/{page.file.src_uri}'
  )

  def mend(match: re.Match[str]) -> str:
    begin, link = match.groups()
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if target.startswith('docs/'):
      shown = target.removeprefix('docs/')
    elif target in generated_pages.SOURCES.values():
      shown = next(
        page for page, path in generated_pages.SOURCES.items() if path == target
      )
    elif not (ROOT / target).exists():
      _LOG.warning(f'{source}: link to {link}, which does not exist')
      return match[0]
    elif target.endswith(_PICTURES):
      shown = f'{_COPIES}/{target}'
    else:
      kind = 'tree' if (ROOT / target).is_dir() else 'blob'
      return f'{begin}{config["repo_url"]}/{kind}/main/{target}'
    here = posixpath.dirname(page.file.src_uri) or '.'
    return begin + posixpath.relpath(shown, here)

  return _LINK.sub(mend, markdown)
