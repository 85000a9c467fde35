"""Hooks of mkdocs that add the generated pages and rewrite links.

Pages in docs/ link to files outside of docs/ by relative paths, so that the
links also work on GitHub. On the site, such a link leads to the page that
shows the file, or to the file on GitHub. PNG files in experiments/results are
copied, so that pages can show them.
"""

import pathlib
import posixpath
import re
from typing import Any

import generated_pages
from mkdocs.structure import files as files_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
_LINK = re.compile(r'(\]\()((?!\w+:|#)[^)\s#]+)')
# The folder on the site for pictures that are not in docs/.
_COPIES = 'copied'


def on_config(config: Any) -> Any:
  """Adds the pages of all modules to the navigation."""
  modules = [
    {package: path} for package, path in generated_pages.module_index()
  ]
  for section in config['nav']:
    for entry in section.get('Project', []):
      if entry.get('Every module') == 'MODULES':
        entry['Every module'] = modules
  return config


def on_files(files: Any, config: Any) -> Any:
  """Adds the generated pages and the pictures of experiments/results."""
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
  """Rewrites the links of a page to files outside of docs/."""
  # The links of the page are relative to its path in the repository.
  source = generated_pages.SOURCES.get(
    page.file.src_uri, f'docs/{page.file.src_uri}'
  )

  def rewrite(match: re.Match[str]) -> str:
    begin, link = match.groups()
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if target.startswith('docs/'):
      shown = target.removeprefix('docs/')
    elif target in generated_pages.SOURCES.values():
      shown = next(
        page for page, path in generated_pages.SOURCES.items() if path == target
      )
    elif not (ROOT / target).exists():
      return match[0]  # mkdocs warns of the missing file.
    elif target.endswith('.png'):
      shown = f'{_COPIES}/{target}'
    else:
      kind = 'tree' if (ROOT / target).is_dir() else 'blob'
      return f'{begin}{config["repo_url"]}/{kind}/main/{target}'
    here = posixpath.dirname(page.file.src_uri) or '.'
    return begin + posixpath.relpath(shown, here)

  return _LINK.sub(rewrite, markdown)
