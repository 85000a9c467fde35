// A map of points in SVG.

import { draw, make } from './dom.js';

const SIZE = 420;
const MARGIN = 18;
const COLORS = 8; // Group 8 has the first color and the second shape.
const SHAPES = [
  'M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z',
  'M-4.5 -4.5h9v9h-9Z',
  'M0 -5.5L5.5 4.5h-11Z',
  'M0 -6L6 0L0 6L-6 0Z',
];

// Draws the sign of a group of points.
export const sign = (group, attributes = {}) => draw('path', {
  class: `point color-${group % COLORS}`,
  d: SHAPES[Math.floor(group / COLORS) % SHAPES.length], ...attributes,
});

// Draws points { x, y, group } in a square.
// onPoint(point): called when the pointer enters or clicks a point.
// Returns { picture, showGroup }. showGroup(group) fades all other groups.
// showGroup(null) fades no group.
export function pointMap(points, onPoint) {
  const scale = (name) => {
    const values = points.map((point) => point[name]);
    const low = Math.min(...values);
    const span = Math.max(...values) - low || 1;
    return (value) => MARGIN + ((SIZE - 2 * MARGIN) * (value - low)) / span;
  };
  const [x, y] = [scale('x'), scale('y')];
  const svg = draw('svg', {
    class: 'picture map', role: 'img', viewBox: `0 0 ${SIZE} ${SIZE}`,
    'aria-label': 'Map of the training facts, with the groups listed below',
  });
  const signs = points.map((point) => {
    const [left, top] = [x(point.x), SIZE - y(point.y)];
    const shape = sign(point.group, { transform: `translate(${left} ${top})` });
    for (const event of ['pointerenter', 'click']) {
      shape.addEventListener(event, () => onPoint(point));
    }
    return shape;
  });
  svg.append(...signs);
  return {
    picture: svg,
    showGroup(group) {
      signs.forEach((shape, index) => shape.classList.toggle(
        'faint', group !== null && points[index].group !== group));
    },
  };
}

// Returns the sign of a group for a legend.
export const legendSign = (group) => make('span', { ariaHidden: 'true' },
  draw('svg', { viewBox: '-7 -7 14 14', class: 'sign' }, sign(group)));
