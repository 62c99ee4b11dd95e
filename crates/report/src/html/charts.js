// Tooltips, arrow keys and dark colours for the figures of a report. The figures are drawn already: each SVG has
// transparent targets whose `data-tip` is the text to show, in the order in which the arrow keys visit them. The first
// line of a text is its heading; the others are `class TAB name TAB value`.
'use strict';
(() => {
  const make = (name, className, text) => {
    const element = document.createElement(name);
    element.className = className;
    if (text) element.textContent = text;
    return element;
  };
  const tip = make('div', 'tip');
  tip.setAttribute('role', 'status');
  tip.hidden = true;
  let shown = null;

  const hide = () => {
    shown?.classList.remove('on');
    shown = null;
    tip.hidden = true;
  };

  // Shows the tooltip of a target beside the pointer, or beside the target's middle.
  const show = (target, pointer) => {
    if (shown !== target) {
      hide();
      shown = target;
      target.classList.add('on');
      const [head, ...rows] = target.dataset.tip.split('\n');
      tip.replaceChildren(make('strong', '', head), ...rows.map((row) => {
        const [color, name, value] = row.split('\t');
        const line = make('div', '');
        line.append(make('i', color), make('span', '', name), make('b', '', value));
        return line;
      }));
    }
    const plot = target.closest('.plot');
    if (tip.parentElement !== plot) plot.append(tip);
    tip.hidden = false;
    const [around, box] = [plot.getBoundingClientRect(), target.getBoundingClientRect()];
    const x = (pointer ? pointer.clientX : box.left + box.width / 2) - around.left;
    const y = (pointer ? pointer.clientY : box.top + Math.min(box.height / 2, 40)) - around.top;
    const room = around.width - tip.offsetWidth;
    const left = x + 16 > room ? x - tip.offsetWidth - 16 : x + 16;
    tip.style.left = `${Math.max(0, Math.min(left, room))}px`;
    // Under a finger the tooltip would not be seen.
    const above = pointer?.pointerType === 'touch' ? tip.offsetHeight + 24 : 20;
    tip.style.top = `${y - above}px`;
  };

  const follow = (event) => {
    const target = event.target.closest?.('.target');
    if (target) show(target, event);
    else if (shown) hide();
  };
  document.addEventListener('pointermove', (event) => { if (event.pointerType !== 'touch') follow(event); });
  document.addEventListener('pointerdown', follow);
  document.documentElement.addEventListener('pointerleave', hide);
  document.addEventListener('focusout', hide);

  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') hide();
    const figure = event.target.closest?.('.plot svg');
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!figure || !(step || event.key === 'Home' || event.key === 'End')) return;
    const targets = [...figure.querySelectorAll('.target')];
    if (!targets.length) return;
    event.preventDefault();
    const at = targets.indexOf(shown);
    const last = targets.length - 1;
    const next = event.key === 'Home' || at < 0 && step > 0 ? 0
      : event.key === 'End' || at < 0 ? last : Math.max(0, Math.min(at + step, last));
    show(targets[next], null);
  });

  const root = document.documentElement;
  const theme = document.getElementById('theme');
  const isDark = () => (root.dataset.theme
    || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const label = () => { theme.textContent = isDark() ? 'Light' : 'Dark'; };
  try {
    const kept = localStorage.getItem('plimsoll-theme');
    if (kept) root.dataset.theme = kept;
  } catch { /* A file may have no storage: then the system decides. */ }
  label();
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem('plimsoll-theme', root.dataset.theme); } catch { /* As above. */ }
    label();
  });
  root.dataset.drawn = document.querySelectorAll('figure .plot').length;
})();
