'use strict';

/* Sorts a table by one of its columns. Missing numbers come last. */
function sortBy(table, index, ascending) {
  const body = table.tBodies[0];
  const key = (row) => {
    const cell = row.cells[index];
    if (!cell.classList.contains('number')) return cell.textContent;
    return 'value' in cell.dataset ? Number(cell.dataset.value) : null;
  };
  const rows = Array.from(body.rows, (row, place) => [key(row), place, row]);
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  rows.sort(([a, first], [b, second]) => {
    if (a === null || b === null) {
      return (a === null) - (b === null) || first - second;
    }
    const order = typeof a === 'number' ? a - b : compare(a, b);
    return (ascending ? order : -order) || first - second;
  });
  body.append(...rows.map(([, , row]) => row));
}

for (const button of document.querySelectorAll('table.sortable th > button')) {
  button.addEventListener('click', () => {
    const header = button.parentElement;
    const table = header.closest('table');
    const before = header.getAttribute('aria-sort');
    // The first click sorts numbers in descending and text in ascending order.
    const ascending = before === 'none'
      ? header.classList.contains('text')
      : before === 'descending';
    for (const other of header.parentElement.cells) {
      other.setAttribute('aria-sort', 'none');
    }
    header.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
    sortBy(table, header.cellIndex, ascending);
  });
}

for (const part of document.querySelectorAll('.filtered')) {
  const field = part.querySelector('input');
  const status = part.querySelector('output');
  const rows = Array.from(part.querySelector('tbody').rows);
  part.querySelector('.filter').hidden = false;
  field.addEventListener('input', () => {
    const wanted = field.value.toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      count += !row.hidden;
    }
    status.textContent = wanted ? `${count} of ${rows.length}` : '';
  });
}
